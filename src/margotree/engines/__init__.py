"""The engines that train trees."""

from margotree.engines.base import Answer, Engine, EngineError, NotInstalled, Refused
from margotree.engines.registry import accepting, choose_engine, engine_names, get_engine, solve, train
from margotree.engines.run_control import Event, Limits, Watch

__all__ = [
    "Answer",
    "Engine",
    "EngineError",
    "Event",
    "Limits",
    "NotInstalled",
    "Refused",
    "Watch",
    "accepting",
    "choose_engine",
    "engine_names",
    "get_engine",
    "solve",
    "train",
]
