#!/usr/bin/env python3
"""Exports nets of PyTorch as ONNX files, runs them by `rlxvk run`, and prints a table of results and times beside PyTorch.

    tools/bench/compare_models.py [--program build/bin/rlxvk] [--precision f32,f16] [--compiled] [--only NAME]

Times of runs are medians on the device, and for rlxvk by the clock, too: from the call of a run to its outputs on the host.
PyTorch is in eager mode; images have the faster one of both layouts; f16 is net.half().
--compiled times torch.compile, too. The error is the largest difference from PyTorch's result in f32, relative to the largest
element of that. f32 products of PyTorch use no TF32. Needs PyTorch with a CUDA device. Exits 1 if an error is above 1e-3 in
f32, or above 3e-2 in f16 or bf16.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn
from torch.nn import functional

import compare
import compare_nets
from compare_nets import conv_norm

MOST_ERROR = {"f32": 1e-3, "f16": 3e-2, "bf16": 3e-2}


class Inverted(nn.Module):
    """The block of MobileNet-v2: widen by 1x1, 3x3 by channel, narrow by 1x1."""

    def __init__(self, inputs, outputs, stride, widen):
        super().__init__()
        width = inputs * widen
        self.adds = stride == 1 and inputs == outputs
        middle = nn.Sequential(nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False), nn.BatchNorm2d(width))
        wide = [conv_norm(inputs, width, 1, 1), nn.ReLU6()] if widen > 1 else []
        self.steps = nn.Sequential(*wide, middle, nn.ReLU6(), conv_norm(width, outputs, 1, 1))

    def forward(self, x):
        return x + self.steps(x) if self.adds else self.steps(x)


class MobileNetV2(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        layers, inputs = [conv_norm(3, 32, 3, 2), nn.ReLU6()], 32
        for widen, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                              (6, 160, 3, 2), (6, 320, 1, 1)):
            for block in range(count):
                layers.append(Inverted(inputs, outputs, 1 if block else stride, widen))
                inputs = outputs
        self.layers = nn.Sequential(*layers, conv_norm(inputs, 1280, 1, 1), nn.ReLU6())
        self.output = nn.Linear(1280, classes)

    def forward(self, x):
        return self.output(self.layers(x).mean((2, 3)))


def twice(inputs, outputs):
    return nn.Sequential(conv_norm(inputs, outputs, 3, 1), nn.ReLU(), conv_norm(outputs, outputs, 3, 1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=32, levels=4):
        super().__init__()
        widths = [width << level for level in range(levels + 1)]
        self.down = nn.ModuleList(twice(3 if not level else widths[level - 1], widths[level]) for level in range(levels + 1))
        self.up = nn.ModuleList(nn.ConvTranspose2d(widths[level + 1], widths[level], 2, 2) for level in range(levels))
        self.join = nn.ModuleList(twice(2 * widths[level], widths[level]) for level in range(levels))
        self.output = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for level, step in enumerate(self.down):
            x = step(functional.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for level in reversed(range(len(self.up))):
            x = self.join[level](torch.cat((kept[level], self.up[level](x)), 1))
        return self.output(x)


NETS = {"ResNet-50, 32 of 224x224": compare_nets.TRAINED["resnet50"],
        "MobileNet-v2, 32 of 224x224": (MobileNetV2, lambda: torch.rand(32, 3, 224, 224) * 2 - 1),
        "BERT-base, 32 of 128": compare_nets.TRAINED["bert base"],
        "U-Net, 8 of 256x256": (UNet, lambda: torch.rand(8, 3, 256, 256) * 2 - 1)}


def time_torch(net, x, precision, compiled):
    """Milliseconds of a run on the device."""
    if precision != "f32":
        dtype = compare_nets.DTYPES[precision]
        net, x = net.to(dtype), x.to(dtype) if x.is_floating_point() else x
    return compare_nets.time_layouts(net, x, *([torch.compile] if compiled else []))


def run_program(program, folder, precision):
    """The report of `rlxvk run`, and the first output."""
    out = os.path.join(folder, precision)
    os.mkdir(out)
    command = [program, "run", os.path.join(folder, "net.onnx"), "--input", "x=" + os.path.join(folder, "x.npy"),
               "--output", out, "--precision", precision, "--repeat", "50", "--json"]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return report, numpy.load(os.path.join(out, "output_0.npy"))


def measure(name, folder, arguments):
    """Prints the rows of a net. Returns whether all errors are as small as they should be."""
    make, batch = NETS[name]
    torch.manual_seed(1)
    net, x = make().eval(), batch()
    for layer in net.modules():  # activations keep their size, so that the error says something
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    torch.onnx.export(net, (x,), os.path.join(folder, "net.onnx"), input_names=["x"], output_names=["y"], dynamo=False)
    numpy.save(os.path.join(folder, "x.npy"), x.numpy())
    net, x = net.cuda(), x.cuda()
    with torch.inference_mode():
        wanted = net(x).cpu().numpy()
    good = True
    for precision in arguments.precision.split(","):
        report, got = run_program(arguments.program, folder, precision)
        error = float(numpy.abs(got - wanted).max() / numpy.abs(wanted).max())
        peers = [time_torch(net, x, precision, compiled) for compiled in ((False, True) if arguments.compiled else (False,))]
        beside = " | ".join(f"{ms:.2f} ms | {ms / report['device_ms']:.2f}" for ms in peers)
        net = net.float()
        times = (report["load_ms"], report["compile_ms"], report["median_ms"], report["device_ms"])
        print(f"| {name} | {precision} | {' | '.join(f'{ms:.2f} ms' for ms in times)} | {beside} | {error:.1e} |", flush=True)
        good = good and error <= MOST_ERROR[precision]
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/rlxvk")
    parser.add_argument("--precision", default="f32,f16")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if not compare.load_torch()[0]:  # it also sets the precision of products
        sys.exit("compare_models.py: no CUDA device for PyTorch here")
    peers = ("PyTorch", "PyTorch compiled") if arguments.compiled else ("PyTorch",)
    print("| net | precision | load | compile | by the clock | on the device |" + "".join(f" {peer} | its time by ours |" for peer in peers) + " error |")
    print("|---" * (7 + 2 * len(peers)) + "|")
    good = True
    for name in NETS:
        if arguments.only in name:
            with tempfile.TemporaryDirectory() as folder:
                good = measure(name, folder, arguments) and good
            torch.cuda.empty_cache()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
