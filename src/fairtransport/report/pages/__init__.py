"""Self-contained HTML pages: ``collect_*`` gathers what a page shows in a dict, ``render_*`` fills its template."""
