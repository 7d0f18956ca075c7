#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes torch_losses.csv: what PyTorch makes of the networks, weights and batches of test_torch.cpp.

Needs python3-torch (Debian 12: 1.13.1+dfsg). Run with
    CONVOY_TORCH=1 build/test_numerics -tc='numerics: what PyTorch is given' | /usr/bin/python3 tests/numerics/make_reference.py > tests/numerics/torch_losses.csv
The test program prints, for each network: its layers, its parameters and the batches as JSON, a line each.
"""
import json
import sys

import torch
from torch import nn

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


class Residual(nn.Module):
    """x + inner(x)"""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


def networks():
    def block(channels):
        return Residual(nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)))

    return {
        "lenet": nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 3, padding=1), nn.Tanh(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)),
        "resnet": nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), block(8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), block(16), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)),
        "mobile": nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Hardswish(),
            nn.Conv2d(8, 16, 1, stride=2), nn.ReLU6(), nn.Conv2d(16, 16, 3, padding=2, dilation=2, groups=4), nn.GELU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10)),
    }


def main():
    print("network,optimizer,step,loss")
    nets = networks()
    for line in sys.stdin:
        if not line.startswith("{"):
            continue
        given = json.loads(line)
        net = nets[given["network"]]
        with torch.no_grad():
            for parameter, values in zip(net.parameters(), given["parameters"], strict=True):
                parameter.copy_(torch.tensor(values).reshape(parameter.shape))
        rate = given["learning_rate"]
        optimizer = {"sgd": lambda: torch.optim.SGD(net.parameters(), lr=rate),
                     "momentum": lambda: torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9),
                     "adam": lambda: torch.optim.Adam(net.parameters(), lr=rate)}[given["optimizer"]]()
        images = torch.tensor(given["images"]).reshape(-1, 1, 8, 8)
        labels = torch.tensor(given["labels"])
        for step, batch in enumerate(given["batches"]):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            print(f"{given['network']},{given['optimizer']},{step + 1},{loss.item():.12g}")


main()
