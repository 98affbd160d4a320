"""The desk of a retail bank: transfers, wires, disputes, accounts, overdrafts and cards."""
