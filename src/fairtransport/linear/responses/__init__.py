"""Responses of linear models: one of two classes, or a real number."""

from fairtransport.linear.responses.base import Response
from fairtransport.linear.responses.binary import BinaryResponse
from fairtransport.linear.responses.real import RealResponse

__all__ = ["BinaryResponse", "RealResponse", "Response"]
