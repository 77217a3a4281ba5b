"""Page of a series of audits: a control chart, small multiples and tables, without any script."""
