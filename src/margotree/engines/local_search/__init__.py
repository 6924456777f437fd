"""The alternating search: good trees at any size, without a bound (docs/local_search.md)."""
