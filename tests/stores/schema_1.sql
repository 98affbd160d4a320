BEGIN TRANSACTION;
CREATE TABLE events (
            session INTEGER NOT NULL REFERENCES sessions (number),
            seq INTEGER NOT NULL,
            line TEXT NOT NULL,
            PRIMARY KEY (session, seq)
        ) WITHOUT ROWID;
INSERT INTO "events" VALUES(1,0,'{"actor":"runtime","at":1000.0,"format":1,"frame":"","hash":"cc6f6e611e0f2f00e913e5ecb388f713b595618d3758f1c0e947809d494308c4","kind":"note","payload":{"details":{"arm":"","goals":["transfer","wire","refund","rename"],"handbook":"counter","model":"","programs":{"refund":"f8c04831b6288f663afb542fb87ffe736a41b65a0ad671a655597f6b96df0bdb","rename":"a80c28ffdb6ffc63a5f7a9009d4c3e24d78ea216ba31352ff4eaf613f8f07b96","transfer":"72ce33732e836cf3dc89ef3fd4a8d5d31dd9254d1f7b526e9d3ae3cbc7252389","wire":"b8f5b15b7e528277a9a51f89152d620328def064b7cec64aa8a97acf0a7a6f37"}},"name":"opened"},"previous":"707196e78ae565a5873a47fcb2d0020723775d571b2fe896e86594c8ffc24d1d","process":null,"seq":0}');
INSERT INTO "events" VALUES(1,1,'{"actor":"model","at":1000.0,"format":1,"frame":"rename@check_known","hash":"baa0487afa94c456eabb2d9f9b131bad183aa5acec9592323b628a07b0b51e8a","kind":"start","payload":{"arguments":{"name":"Anna","username":"ann"},"goal":"rename","opened":1,"program":"a80c28ffdb6ffc63a5f7a9009d4c3e24d78ea216ba31352ff4eaf613f8f07b96","reactivated":false,"suspended":null},"previous":"cc6f6e611e0f2f00e913e5ecb388f713b595618d3758f1c0e947809d494308c4","process":"p1","seq":1}');
INSERT INTO "events" VALUES(1,2,'{"actor":"model","at":1000.0,"format":1,"frame":"rename@check_known","hash":"8cb71338ff695cd5ada70f7a29cdcab53f6a5d954cc36511b6d547db5a1fffa6","kind":"call","payload":{"arguments":{},"function":"known","learned":{},"resolved":{"username":"ann"},"slot":"known"},"previous":"baa0487afa94c456eabb2d9f9b131bad183aa5acec9592323b628a07b0b51e8a","process":"p1","seq":2}');
INSERT INTO "events" VALUES(1,3,'{"actor":"model","at":1000.0,"format":1,"frame":"rename/known@verify","hash":"7a9fabc794052ce10f75545a0f00427bb6e9f767aaeb4676bebcbdc4eeaf2caa","kind":"domain_call","payload":{"action":"find_account","arguments":{"username":"ann"},"call_id":"c1","opened":2},"previous":"8cb71338ff695cd5ada70f7a29cdcab53f6a5d954cc36511b6d547db5a1fffa6","process":"p1","seq":3}');
INSERT INTO "events" VALUES(1,4,'{"actor":"tool","at":1000.0,"format":1,"frame":"rename/known@verify","hash":"d224adc335d4551043e35ee74d44446b1f0384e2dda8236240e91dfc65f3cd29","kind":"domain_result","payload":{"action":"find_account","call":3,"call_id":"c1","learned":{},"moved":"judge","ok":true,"opened":2,"value":{"done":"find_account"}},"previous":"7a9fabc794052ce10f75545a0f00427bb6e9f767aaeb4676bebcbdc4eeaf2caa","process":"p1","seq":4}');
INSERT INTO "events" VALUES(1,5,'{"actor":"model","at":1000.0,"format":1,"frame":"rename/known@judge","hash":"ae68d8eed518deb4161ac992e733b7814290de7fda4eec938f1c756b20fb2fab","kind":"return","payload":{"arguments":{},"bound":{"cited":"frame","earlier":[],"evidence":[4],"holds":true,"unresolved":[]},"evidence":[],"function":"known","function_kind":"rule","holds":true,"learned":{},"opened":2,"slot":"known","value":null},"previous":"d224adc335d4551043e35ee74d44446b1f0384e2dda8236240e91dfc65f3cd29","process":"p1","seq":5}');
INSERT INTO "events" VALUES(1,6,'{"actor":"model","at":1000.0,"format":1,"frame":"rename@act","hash":"24f2fa1a4f168ce56e5580f081e084efb3cdf0b79910571e74dd427165a26d93","kind":"domain_call","payload":{"action":"rename","arguments":{"name":"Anna","username":"ann"},"call_id":"c3","opened":1},"previous":"ae68d8eed518deb4161ac992e733b7814290de7fda4eec938f1c756b20fb2fab","process":"p1","seq":6}');
INSERT INTO "events" VALUES(1,7,'{"actor":"tool","at":1000.0,"format":1,"frame":"rename@act","hash":"eef109d939d89ee789c0c2617c60e563b86ca84bdae8b6c1218232b98c5d9248","kind":"domain_result","payload":{"action":"rename","call":6,"call_id":"c3","learned":{},"moved":"done","ok":true,"opened":1,"value":{"done":"rename"}},"previous":"24f2fa1a4f168ce56e5580f081e084efb3cdf0b79910571e74dd427165a26d93","process":"p1","seq":7}');
INSERT INTO "events" VALUES(1,8,'{"actor":"model","at":1000.0,"format":1,"frame":"rename@done","hash":"fd3bf3264969af50d50748cb30b676feab18652a07a2718643ab6bd3bc403ed2","kind":"complete","payload":{"accepting":true,"label":"done","summary":"done","unwound":["rename"]},"previous":"eef109d939d89ee789c0c2617c60e563b86ca84bdae8b6c1218232b98c5d9248","process":"p1","seq":8}');
INSERT INTO "events" VALUES(1,9,'{"actor":"user","at":1000.0,"format":1,"frame":"","hash":"14bcb851b2d0cf22f5f2163b91b9ad029c25228fc49f3488f9d8a03ce91b12d6","kind":"user_said","payload":{"moved":null,"text":"grüß Gott"},"previous":"fd3bf3264969af50d50748cb30b676feab18652a07a2718643ab6bd3bc403ed2","process":null,"seq":9}');
INSERT INTO "events" VALUES(2,0,'{"actor":"runtime","at":1000.0,"format":1,"frame":"","hash":"30313befc6e1f0cdeac6a83dedb9d8b50f1d810912b2a3efbf895bf27d68abee","kind":"note","payload":{"details":{"arm":"","goals":["transfer","wire","refund","rename"],"handbook":"counter","model":"","programs":{"refund":"f8c04831b6288f663afb542fb87ffe736a41b65a0ad671a655597f6b96df0bdb","rename":"a80c28ffdb6ffc63a5f7a9009d4c3e24d78ea216ba31352ff4eaf613f8f07b96","transfer":"72ce33732e836cf3dc89ef3fd4a8d5d31dd9254d1f7b526e9d3ae3cbc7252389","wire":"b8f5b15b7e528277a9a51f89152d620328def064b7cec64aa8a97acf0a7a6f37"}},"name":"opened"},"previous":"317352af63f298ff8d6f3cb731e45f178f9b03f284e50813c11463610303ec21","process":null,"seq":0}');
INSERT INTO "events" VALUES(2,1,'{"actor":"model","at":1000.0,"format":1,"frame":"transfer@check_logged_in","hash":"c0a095e523089da8ece46f7872060f3baf5c44216e1cd3676d8fd9901de504c4","kind":"start","payload":{"arguments":{"amount":100,"to":"bob","username":"ann"},"goal":"transfer","opened":1,"program":"72ce33732e836cf3dc89ef3fd4a8d5d31dd9254d1f7b526e9d3ae3cbc7252389","reactivated":false,"suspended":null},"previous":"30313befc6e1f0cdeac6a83dedb9d8b50f1d810912b2a3efbf895bf27d68abee","process":"p1","seq":1}');
INSERT INTO "events" VALUES(2,2,'{"actor":"model","at":1000.0,"format":1,"frame":"transfer@check_logged_in","hash":"a1afa6f32e09caa568bd3c3fe2f0bdf678bd900e1df6d1208e1cd3ee22e125d4","kind":"call","payload":{"arguments":{},"function":"logged_in","learned":{},"resolved":{"username":"ann"},"slot":"logged_in"},"previous":"c0a095e523089da8ece46f7872060f3baf5c44216e1cd3676d8fd9901de504c4","process":"p1","seq":2}');
INSERT INTO "events" VALUES(2,3,'{"actor":"model","at":1000.0,"format":1,"frame":"transfer/logged_in@ask","hash":"d26503167ded948568e39e00d771f95bd8936ceb241cee252d159c47d6577c4b","kind":"select_branch","payload":{"label":"ask","option":"next","target":"establish"},"previous":"a1afa6f32e09caa568bd3c3fe2f0bdf678bd900e1df6d1208e1cd3ee22e125d4","process":"p1","seq":3}');
INSERT INTO "events" VALUES(2,4,'{"actor":"model","at":1000.0,"format":1,"frame":"transfer/logged_in@establish","hash":"31706c99e6eb5f4c970dd5dba4d78f358dd7ad6e8474ddecf1b4b60e3a781b8e","kind":"domain_call","payload":{"action":"login","arguments":{"password":{"$ref":"0f334083a68b27f36e0021ab27b5fcd61e1bd451dbc218ba18d87b9e85f2a07c","bytes":8},"username":"ann"},"call_id":"c2","opened":2},"previous":"d26503167ded948568e39e00d771f95bd8936ceb241cee252d159c47d6577c4b","process":"p1","seq":4}');
INSERT INTO "events" VALUES(2,5,'{"actor":"tool","at":1000.0,"format":1,"frame":"transfer/logged_in@establish","hash":"7ab7107a89ec049eff672615f71e8cb12f129a3dcc85367c4f6886d08dfcae8e","kind":"domain_result","payload":{"action":"login","call":4,"call_id":"c2","learned":{"password":{"$ref":"0f334083a68b27f36e0021ab27b5fcd61e1bd451dbc218ba18d87b9e85f2a07c","bytes":8}},"moved":"judge","ok":true,"opened":2,"value":{"done":"login"}},"previous":"31706c99e6eb5f4c970dd5dba4d78f358dd7ad6e8474ddecf1b4b60e3a781b8e","process":"p1","seq":5}');
INSERT INTO "events" VALUES(2,6,'{"actor":"model","at":1000.0,"format":1,"frame":"transfer/logged_in@judge","hash":"7b8eee92dd000df463d54d73a2bad657d20490154dd788785f360037f3dd2425","kind":"return","payload":{"arguments":{},"bound":{"cited":"frame","earlier":[],"evidence":[5],"holds":true,"unresolved":[]},"evidence":[],"function":"logged_in","function_kind":"gate","holds":true,"learned":{},"opened":2,"slot":"logged_in","value":null},"previous":"7ab7107a89ec049eff672615f71e8cb12f129a3dcc85367c4f6886d08dfcae8e","process":"p1","seq":6}');
INSERT INTO "events" VALUES(2,7,'{"actor":"model","at":1000.0,"format":1,"frame":"transfer@check_funds_cover","hash":"04c0e0323cacd282258a1f6b80c2918e2d3505fb1993c9fa6d6e554a2ba719ce","kind":"call","payload":{"arguments":{},"function":"funds_cover","learned":{},"resolved":{"amount":100,"username":"ann"},"slot":"funds_cover"},"previous":"7b8eee92dd000df463d54d73a2bad657d20490154dd788785f360037f3dd2425","process":"p1","seq":7}');
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('readable_from',1);
CREATE TABLE payloads (
            session INTEGER NOT NULL REFERENCES sessions (number),
            ref TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (session, ref)
        ) WITHOUT ROWID;
INSERT INTO "payloads" VALUES(2,'0f334083a68b27f36e0021ab27b5fcd61e1bd451dbc218ba18d87b9e85f2a07c','"secret"');
CREATE TABLE programs (sha256 TEXT PRIMARY KEY, artifact TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "programs" VALUES('72ce33732e836cf3dc89ef3fd4a8d5d31dd9254d1f7b526e9d3ae3cbc7252389','sopilot_program: 1
entry: transfer
compiler: "0.1.0"
source:
  handbook: counter
  procedure: transfer
  sha256: "0bc9a45aa638278f0fd654ea6867f2d85f20e1e9c99527318cf099cd99c4d929"
constants:
  limit: 500
guarded:
  - {action: refund, roles: [supervisor], needed: 1}
  - {action: transfer}
  - {action: wire, roles: [supervisor, auditor, officer], needed: 2, expires_seconds: 3600}
functions:
  transfer:
    kind: process
    parameters: [username, to, amount]
    steps:
      - step: check_logged_in
        call: logged_in
        with: {username: $username}
        bind: logged_in
        unmet: refuse
        says: The customer username is logged in.
      - step: check_funds_cover
        call: funds_cover
        with: {username: $username, amount: $amount}
        bind: funds_cover
        unmet: refuse
        says: The balance of username is at least amount.
      - step: check_known
        call: known
        with: {username: $to}
        bind: known
        unmet: refuse
        says: The account to exists.
      - step: check_small
        call: small
        with: {amount: $amount}
        bind: small
        says: The amount is at most 500.
      - step: check_first_of_logged_in_known
        call: first_of_logged_in_known
        with: {username: $username}
        bind: first_of_logged_in_known
      - step: decide
        branch: {any: [small, first_of_logged_in_known]}
        then: act
        otherwise: refuse
      - step: act
        act: transfer
        with: {username: $username, to: $to, amount: $amount}
        goal: true
      - step: done
        complete: ""
      - step: refuse
        fail: ""
  first_of_logged_in_known:
    kind: group
    parameters: [username]
    says: "one of these must hold; stop at the first that does"
    steps:
      - step: check_logged_in
        call: logged_in
        with: {username: $username}
        bind: logged_in
        met: return_met
        says: The customer username is logged in.
      - step: check_known
        call: known
        with: {username: $username}
        bind: known
        unmet: return_unmet
        says: The account username exists.
      - step: return_met
        return: true
      - step: return_unmet
        return: false
  logged_in:
    kind: gate
    parameters: [username]
    predicate: logged_in
    says: "The customer {username} is logged in."
    steps:
      - step: ask
        ask: [password]
        says: "ask the user for `password` unless the dialog has it already"
      - step: establish
        act: login
        with: {username: $username, password: "?password"}
        says: "take `password` from earlier evidence, or ask the user"
      - step: judge
        return: null
        says: "it holds if the call succeeded; the user may correct a value and try again"
    notes:
      - "template: login"
  funds_cover:
    kind: rule
    parameters: [username, amount]
    predicate: funds_cover
    says: "The balance of {username} is at least {amount}."
    verdict: "result.balance >= amount"
    steps:
      - step: verify
        act: read_balance
        with: {username: $username}
      - step: judge
        return: null
  known:
    kind: rule
    parameters: [username]
    predicate: known
    says: "The account {username} exists."
    steps:
      - step: verify
        act: find_account
        with: {username: $username}
      - step: judge
        return: null
  small:
    kind: rule
    parameters: [amount]
    predicate: small
    says: "The amount is at most {limit}."
    verdict: "amount <= limit"
    steps:
      - step: judge
        return: null
        says: "judge from the arguments; no tool is needed"
');
INSERT INTO "programs" VALUES('a80c28ffdb6ffc63a5f7a9009d4c3e24d78ea216ba31352ff4eaf613f8f07b96','sopilot_program: 1
entry: rename
compiler: "0.1.0"
source:
  handbook: counter
  procedure: rename
  sha256: "0bc9a45aa638278f0fd654ea6867f2d85f20e1e9c99527318cf099cd99c4d929"
constants:
  limit: 500
guarded:
  - {action: refund, roles: [supervisor], needed: 1}
  - {action: transfer}
  - {action: wire, roles: [supervisor, auditor, officer], needed: 2, expires_seconds: 3600}
functions:
  rename:
    kind: process
    parameters: [username, name]
    steps:
      - step: check_known
        call: known
        with: {username: $username}
        bind: known
        unmet: refuse
        says: The account username exists.
      - step: act
        act: rename
        with: {username: $username, name: $name}
        goal: true
      - step: done
        complete: ""
      - step: refuse
        fail: ""
  known:
    kind: rule
    parameters: [username]
    predicate: known
    says: "The account {username} exists."
    steps:
      - step: verify
        act: find_account
        with: {username: $username}
      - step: judge
        return: null
');
INSERT INTO "programs" VALUES('b8f5b15b7e528277a9a51f89152d620328def064b7cec64aa8a97acf0a7a6f37','sopilot_program: 1
entry: wire
compiler: "0.1.0"
source:
  handbook: counter
  procedure: wire
  sha256: "0bc9a45aa638278f0fd654ea6867f2d85f20e1e9c99527318cf099cd99c4d929"
constants:
  limit: 500
guarded:
  - {action: refund, roles: [supervisor], needed: 1}
  - {action: transfer}
  - {action: wire, roles: [supervisor, auditor, officer], needed: 2, expires_seconds: 3600}
functions:
  wire:
    kind: process
    parameters: [username, amount]
    steps:
      - step: check_small
        call: small
        with: {amount: $amount}
        bind: small
        unmet: refuse
        says: The amount is at most 500.
      - step: check_known
        call: known
        with: {username: $username}
        bind: known
        unmet: refuse
        says: The account username exists.
      - step: act
        act: wire
        with: {username: $username, amount: $amount}
        goal: true
      - step: done
        complete: ""
      - step: refuse
        fail: ""
  small:
    kind: rule
    parameters: [amount]
    predicate: small
    says: "The amount is at most {limit}."
    verdict: "amount <= limit"
    steps:
      - step: judge
        return: null
        says: "judge from the arguments; no tool is needed"
  known:
    kind: rule
    parameters: [username]
    predicate: known
    says: "The account {username} exists."
    steps:
      - step: verify
        act: find_account
        with: {username: $username}
      - step: judge
        return: null
');
INSERT INTO "programs" VALUES('f8c04831b6288f663afb542fb87ffe736a41b65a0ad671a655597f6b96df0bdb','sopilot_program: 1
entry: refund
compiler: "0.1.0"
source:
  handbook: counter
  procedure: refund
  sha256: "0bc9a45aa638278f0fd654ea6867f2d85f20e1e9c99527318cf099cd99c4d929"
constants:
  limit: 500
guarded:
  - {action: refund, roles: [supervisor], needed: 1}
  - {action: transfer}
  - {action: wire, roles: [supervisor, auditor, officer], needed: 2, expires_seconds: 3600}
functions:
  refund:
    kind: process
    parameters: [username, amount]
    steps:
      - step: check_known
        call: known
        with: {username: $username}
        bind: known
        unmet: refuse
        says: The account username exists.
      - step: act
        act: refund
        with: {username: $username, amount: $amount}
        goal: true
      - step: done
        complete: ""
      - step: refuse
        fail: ""
  known:
    kind: rule
    parameters: [username]
    predicate: known
    says: "The account {username} exists."
    steps:
      - step: verify
        act: find_account
        with: {username: $username}
      - step: judge
        return: null
');
CREATE TABLE sessions (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            metadata TEXT NOT NULL,
            summary TEXT NOT NULL,
            head_seq INTEGER NOT NULL,
            head_hash TEXT NOT NULL,
            owner TEXT NOT NULL,
            token INTEGER NOT NULL,
            lease_expires_at REAL NOT NULL
        );
INSERT INTO "sessions" VALUES(1,'df08acdff2c1ca3154a88596f7fbd0dc',1000.0,1000.0,'{"arm":"","extra":{},"format":1,"goals":["transfer","wire","refund","rename"],"handbook":"counter","model":"","programs":{"refund":"f8c04831b6288f663afb542fb87ffe736a41b65a0ad671a655597f6b96df0bdb","rename":"a80c28ffdb6ffc63a5f7a9009d4c3e24d78ea216ba31352ff4eaf613f8f07b96","transfer":"72ce33732e836cf3dc89ef3fd4a8d5d31dd9254d1f7b526e9d3ae3cbc7252389","wire":"b8f5b15b7e528277a9a51f89152d620328def064b7cec64aa8a97acf0a7a6f37"},"salt":"c46bd6b07185cf2bae05ef4103c7ad51","settings":{"automation":{"bind_evidence":false,"complete":false,"enter_calls":false,"fail":false,"group_returns":false,"machine_verdicts":false,"take_branches":false},"by_reference":["password"],"inline_limit":16384,"lease_seconds":60.0,"limits":{"depth":64,"processes":1000,"steps":10000}}}','{"frame":"","goal":"rename","status":"completed","waiting":[]}',9,'14bcb851b2d0cf22f5f2163b91b9ad029c25228fc49f3488f9d8a03ce91b12d6','',2,0.0);
INSERT INTO "sessions" VALUES(2,'4a94ccd16ada365ee60f0882f473c01d',1000.0,1000.0,'{"arm":"","extra":{},"format":1,"goals":["transfer","wire","refund","rename"],"handbook":"counter","model":"","programs":{"refund":"f8c04831b6288f663afb542fb87ffe736a41b65a0ad671a655597f6b96df0bdb","rename":"a80c28ffdb6ffc63a5f7a9009d4c3e24d78ea216ba31352ff4eaf613f8f07b96","transfer":"72ce33732e836cf3dc89ef3fd4a8d5d31dd9254d1f7b526e9d3ae3cbc7252389","wire":"b8f5b15b7e528277a9a51f89152d620328def064b7cec64aa8a97acf0a7a6f37"},"salt":"f8c85cb125f411f786fb9b82799f319f","settings":{"automation":{"bind_evidence":false,"complete":false,"enter_calls":false,"fail":false,"group_returns":false,"machine_verdicts":false,"take_branches":false},"by_reference":["password"],"inline_limit":16384,"lease_seconds":60.0,"limits":{"depth":64,"processes":1000,"steps":10000}}}','{"frame":"transfer/funds_cover@verify","goal":"transfer","status":"running","waiting":[]}',7,'04c0e0323cacd282258a1f6b80c2918e2d3505fb1993c9fa6d6e554a2ba719ce','vm:17427:614cb015',1,1060.0);
CREATE TABLE signatures (
            session INTEGER NOT NULL REFERENCES sessions (number),
            seq INTEGER NOT NULL,
            key TEXT NOT NULL,
            line TEXT NOT NULL,
            PRIMARY KEY (session, seq, key)
        ) WITHOUT ROWID;
INSERT INTO "signatures" VALUES(2,7,'8272ae7a8fcc80bbe4ecb3d629afa1a794b17c4e346e934910543bb80ed0cfc0','{"at":1001.0,"hash":"04c0e0323cacd282258a1f6b80c2918e2d3505fb1993c9fa6d6e554a2ba719ce","key":"8272ae7a8fcc80bbe4ecb3d629afa1a794b17c4e346e934910543bb80ed0cfc0","seq":7,"session":"4a94ccd16ada365ee60f0882f473c01d","signature":"2106a745f3fde72ac6e456fe5637c37da7ced6057278d7d652b52b662b0611e0761257e0ba1d152de4534f10c9a87087b3c02e12fdc3b23df96d4fb1145ba106","sopilot_head":1}');
COMMIT;
