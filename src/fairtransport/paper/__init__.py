"""The tables and figures of the paper, reproduced; one module each."""
