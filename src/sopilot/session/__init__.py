"""The durable session around the machine: context slot, guards, approvals, leases, recovery, and the protocols Store, Tools, Model, User, Clock."""
