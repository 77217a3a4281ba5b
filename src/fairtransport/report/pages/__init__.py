"""Self-contained HTML pages: collect what a page shows, then render it."""
