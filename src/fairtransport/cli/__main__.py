"""``python -m fairtransport.cli`` is the same as ``fairtransport``."""

from __future__ import annotations

from fairtransport.cli import main

if __name__ == "__main__":
    main()
