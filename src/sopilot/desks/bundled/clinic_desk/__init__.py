"""The front desk of a clinic: visits, refills, test results and specialists."""
