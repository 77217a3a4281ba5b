"""Settings that all tests share."""

from hypothesis import settings

settings.register_profile("steady", deadline=None)  # this machine may be busy; a slow example is no fault
settings.load_profile("steady")
