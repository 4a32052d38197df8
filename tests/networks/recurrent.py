"""Recurrent networks."""

from __future__ import annotations

import torch
from torch import nn

from tests.networks.network import Network, RandomInput, convert, ids, network, randomise


class Tagger(nn.Module):
    """Embedding, recurrent layers, one score per tag and token."""

    def __init__(self, cell: type[nn.RNNBase], hidden: int, words: int, **options: object) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, hidden)
        self.layers = cell(hidden, hidden, num_layers=2, batch_first=True, **options)
        self.head = nn.Linear(hidden * (2 if options.get("bidirectional") else 1), 9)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.layers(self.embed(tokens))
        return self.head(states).log_softmax(-1)


def tagger(cell: type[nn.RNNBase], wide: bool, **options: object) -> Network:
    words, hidden = (8000, 256) if wide else (50, 12)
    module = randomise(Tagger(cell, hidden, words, **options))
    model = convert(module, [torch.ones(2, 7, dtype=torch.long)], [[-1, -1]])
    sizes = [(1, 128)] if wide else [(1, 5), (3, 8), (2, 1)]
    return Network(model, [[ids(*size, below=words)] for size in sizes])


@network("lstm_tagger")
def lstm_tagger(wide: bool) -> Network:
    return tagger(nn.LSTM, wide)


@network("bilstm_tagger")
def bilstm_tagger(wide: bool) -> Network:
    return tagger(nn.LSTM, wide, bidirectional=True)


@network("gru_tagger")
def gru_tagger(wide: bool) -> Network:
    return tagger(nn.GRU, wide)


@network("bigru_tagger")
def bigru_tagger(wide: bool) -> Network:
    return tagger(nn.GRU, wide, bidirectional=True)


@network("rnn_tagger")
def rnn_tagger(wide: bool) -> Network:
    return tagger(nn.RNN, wide, bidirectional=True, nonlinearity="relu")


class Stepping(nn.Module):
    """A scripted loop over time with a cell of its own and an early end: Loop and If in IR."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gates = nn.Linear(2 * hidden, 2 * hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(x.size(1), x.size(2))
        for step in range(x.size(0)):
            update, new = self.gates(torch.cat([x[step], state], 1)).chunk(2, 1)
            if bool(new.sum() > 0):
                state = state + torch.sigmoid(update) * torch.tanh(new)
            else:
                state = state * torch.sigmoid(update)
        return state


@network("scripted_loop")
def scripted_loop(wide: bool) -> Network:
    hidden = 128 if wide else 8
    script = torch.jit.script(randomise(Stepping(hidden)))
    model = convert(script, [torch.randn(4, 2, hidden)], [[-1, -1, hidden]])
    return Network(model, [[RandomInput((6, 2, hidden))], [RandomInput((1, 3, hidden))]])
