import numpy as np
import pytest

from sl_discs.engines.cpu import engine


@pytest.fixture
def proposing_at(monkeypatch):
    """Has the engine `cpu` weigh proposals at another temperature, where a test follows."""

    def at(temperature):
        monkeypatch.setattr(
            engine, "proposal_temperatures", lambda row, levels: np.full(row.shape, temperature, np.float32)
        )

    return at
