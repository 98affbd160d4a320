CREATE TABLE customers (
    customer TEXT PRIMARY KEY, name TEXT, address TEXT, country TEXT, currency TEXT,
    tier TEXT, discount TEXT, tax_rate TEXT, payment TEXT, standing TEXT
);
INSERT INTO customers VALUES
    ('C-102', 'Maas Pump Service', 'Rijnkade 14, 3011 Rotterdam', 'NL', 'EUR', 'B', '0.03', '0.21', '30 days net', 'good'),
    ('C-117', 'Lakeside Process Plants', '220 Harbor Drive, Cleveland OH 44114', 'US', 'USD', 'A', '0', '0', '45 days net', 'good'),
    ('C-130', 'Fjord Marine Repair', 'Strandgata 9, 5013 Bergen', 'NO', 'EUR', 'C', '0', '0', '14 days net', 'good'),
    ('C-141', 'Delta Valve Trading', 'Kanaalweg 3, 9000 Gent', 'BE', 'EUR', 'A', '0.16', '0', '60 days net', 'good'),
    ('C-155', 'Northern Filter Works', 'Industrivej 40, 9000 Aalborg', 'DK', 'EUR', 'B', '0', '0', 'in advance', 'blocked');

CREATE TABLE credit (customer TEXT PRIMARY KEY, credit_limit TEXT, receivables TEXT);
INSERT INTO credit VALUES
    ('C-102', '60000', '4120.50'), ('C-117', '250000', '18400'), ('C-130', '40000', '0'),
    ('C-141', '30000', '2250'), ('C-155', '15000', '14980');

-- the share of the price that is ours, by what the customer buys in a year
CREATE TABLE margins (tier TEXT PRIMARY KEY, target TEXT);
INSERT INTO margins VALUES ('A', '0.22'), ('B', '0.26'), ('C', '0.30'), ('floor', '0.10');

CREATE TABLE authority (role TEXT PRIMARY KEY, largest_total TEXT, currency TEXT, least_margin TEXT);
INSERT INTO authority VALUES ('quotation desk', '25000', 'EUR', '0.15');

CREATE TABLE parts (
    part TEXT PRIMARY KEY, description TEXT, unit TEXT, weight_kg TEXT, hazardous INTEGER,
    status TEXT, successor TEXT
);
INSERT INTO parts VALUES
    ('HX-1001', 'Hex bolt M12 x 60, A4-80', 'pcs', '0.068', 0, 'current', NULL),
    ('HX-1002', 'Hex nut M12, A4-80', 'pcs', '0.017', 0, 'current', NULL),
    ('GK-2040', 'Flange gasket DN80 PN16, graphite', 'pcs', '0.110', 0, 'current', NULL),
    ('VL-3080', 'Butterfly valve DN80 PN16, lever', 'pcs', '4.200', 0, 'current', NULL),
    ('VL-3100', 'Butterfly valve DN100 PN16, lever', 'pcs', '6.100', 0, 'current', NULL),
    ('VL-3099', 'Butterfly valve DN100 PN10, lever', 'pcs', '6.000', 0, 'discontinued', 'VL-3100'),
    ('HS-4019', 'Suction hose 19 mm, NBR', 'm', '0.420', 0, 'current', NULL),
    ('HS-4025', 'Suction hose 25 mm, NBR', 'm', '0.580', 0, 'current', NULL),
    ('PU-5200', 'Centrifugal pump 5.5 kW, cast iron', 'pcs', '86.000', 0, 'current', NULL),
    ('PU-5300', 'Centrifugal pump 11 kW, duplex', 'pcs', '142.000', 0, 'current', NULL),
    ('SL-6100', 'Thread sealant, 250 ml', 'pcs', '0.310', 1, 'current', NULL),
    ('FT-7010', 'Filter element 10 micron', 'pcs', NULL, 0, 'current', NULL),
    ('FT-7025', 'Filter element 25 micron', 'pcs', '0.240', 0, 'current', NULL),
    ('BR-8001', 'Ball bearing 6205-2RS', 'pcs', '0.130', 0, 'current', NULL),
    ('BR-8002', 'Ball bearing 6206-2RS', 'pcs', '0.200', 0, 'current', NULL);

-- how many of the part's own unit are in another one
CREATE TABLE part_units (part TEXT, unit TEXT, factor TEXT, PRIMARY KEY (part, unit));
INSERT INTO part_units VALUES
    ('HX-1001', 'box', '100'), ('HX-1002', 'box', '200'), ('HS-4019', 'roll', '50'),
    ('HS-4025', 'roll', '50'), ('FT-7010', 'box', '12'), ('FT-7025', 'box', '12'),
    ('GK-2040', 'box', '25');

CREATE TABLE unit_names (name TEXT PRIMARY KEY, unit TEXT);
INSERT INTO unit_names VALUES
    ('pcs', 'pcs'), ('pc', 'pcs'), ('piece', 'pcs'), ('pieces', 'pcs'), ('ea', 'pcs'), ('st', 'pcs'),
    ('box', 'box'), ('boxes', 'box'), ('m', 'm'), ('metre', 'm'), ('metres', 'm'), ('mtr', 'm'),
    ('roll', 'roll'), ('rolls', 'roll'), ('kg', 'kg'), ('ft', 'ft');

CREATE TABLE stock (part TEXT PRIMARY KEY, on_hand TEXT, reserved TEXT);
INSERT INTO stock VALUES
    ('HX-1001', '8600', '400'), ('HX-1002', '12000', '0'), ('GK-2040', '310', '25'),
    ('VL-3080', '44', '6'), ('VL-3100', '36', '0'), ('VL-3099', '0', '0'), ('HS-4019', '900', '100'),
    ('HS-4025', '400', '0'), ('PU-5200', '14', '2'), ('PU-5300', '3', '1'), ('SL-6100', '160', '0'),
    ('FT-7010', '240', '0'), ('FT-7025', '300', '40'), ('BR-8001', '520', '20'), ('BR-8002', '90', '0');

-- how much of the currency one euro buys
CREATE TABLE exchange_rates (currency TEXT PRIMARY KEY, per_euro TEXT, as_of TEXT);
INSERT INTO exchange_rates VALUES
    ('EUR', '1', '2026-11-13'), ('USD', '1.0842', '2026-11-13'), ('GBP', '0.8436', '2026-11-13');
