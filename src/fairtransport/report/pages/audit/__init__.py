"""Pages of one audit, and of two audits side by side."""
