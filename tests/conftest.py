"""Settings that all tests share."""

import signal

from hypothesis import settings

settings.register_profile("steady", deadline=None)  # this machine may be busy; a slow example is no fault
settings.load_profile("steady")

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: tests that press it would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
