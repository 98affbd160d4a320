"""One durable run: admission, confirmation, approvals, leases, resume."""
