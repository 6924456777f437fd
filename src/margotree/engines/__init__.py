"""The engines that train trees."""

from margotree._moved import renamed
from margotree.engines.base import Answer, Engine, EngineError, NotInstalled, Refused
from margotree.engines.registry import accepting, choose_engine, engine_names, get_engine, solve, train
from margotree.engines.run_control import Event, Limits, RunControl

__all__ = [
    "Answer",
    "Engine",
    "EngineError",
    "Event",
    "Limits",
    "NotInstalled",
    "Refused",
    "RunControl",
    "accepting",
    "choose_engine",
    "engine_names",
    "get_engine",
    "solve",
    "train",
]

__getattr__ = renamed(__name__, {"Watch": "RunControl"})
