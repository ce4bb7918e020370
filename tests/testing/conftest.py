import numpy as np
import pytest

from sl_discs.engines.cpu import arrays


@pytest.fixture
def proposing_at(monkeypatch):
    """Has the engine `cpu` weigh proposals at another temperature, where a test follows."""

    def at(temperature):
        monkeypatch.setattr(
            arrays, "proposal_temperatures", lambda row, levels: np.full(row.shape, temperature, np.float32)
        )

    return at
