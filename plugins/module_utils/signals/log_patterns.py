# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which log lines mean what. A table, so that a release that words a line differently is one more row.

Both generations of SGLang 0.5.x are recognised. ``source`` names where the line is printed (paths below
``sglang/srt/`` of the 0.5.23 package; "older" where the text is of an earlier 0.5 release; "captured" for a line that was
seen and is not SGLang's own). Fatal rows are few on purpose: what is only alarming to read is not here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from re import Pattern

STAGE = "stage"
READY = "ready"
WARMUP_PASSED = "warm-up passed"
WARMUP_FAILED = "warm-up failed"
FATAL = "fatal"
#: Fatal while the server starts; later on the engine may survive it.
FATAL_AT_START = "fatal at start"
#: Worth showing; decides nothing.
NOTE = "note"

ENGINE = ("prefill", "decode", "regular")
ROUTER = ("router",)


@dataclass(frozen=True)
class Row:
    """One meaning. ``label`` is what people read in progress lines; ``next`` is the advice that belongs to a failure.
    A ``generic`` failure only says that something failed: another row, or the exception behind it, says what."""

    name: str
    kind: str
    pattern: str
    source: str
    label: str = ""
    next: str = ""
    roles: tuple[str, ...] = ENGINE
    generic: bool = False
    regex: Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(self.pattern))


STAGES = (
    Row("arguments", STAGE, r"server_args=(\{|ServerArgs\()", "entrypoints/engine.py:1185; older: dataclass repr", "arguments resolved"),
    Row(
        "bootstrap-server",
        STAGE,
        r"CommonKVBootstrapServer started successfully on",
        "disaggregation/common/conn.py:3321",
        "bootstrap server up",
    ),
    Row("parallel-begin", STAGE, r"Init (parallel|torch distributed) begin\.", "distributed/bootstrap.py:115; older", "joining ranks"),
    Row("parallel-end", STAGE, r"Init (parallel|torch distributed) ends\.", "distributed/bootstrap.py:190; older", "ranks joined"),
    Row("load-begin", STAGE, r"Load weight begin\.", "model_executor/model_runner.py:1274", "loading weights"),
    Row("load-end", STAGE, r"Load weight end\.", "model_executor/model_runner.py:1373", "weights loaded"),
    Row(
        "kv-cache",
        STAGE,
        r"KV Cache (is allocated|VA upper bound)|KV cache allocated",
        "mem_cache/memory_pool.py:2088",
        "KV cache allocated",
    ),
    Row("memory-pool", STAGE, r"Memory pool end\.", "mem_cache/kv_cache_configurator.py:499", "memory pools made"),
    Row(
        "graphs-begin",
        STAGE,
        r"(?i)capture (target |draft )?(\w+ )?(\w+ )?(cuda|cpu) graph begin",
        "model_runner_components/cuda_graph_setup.py:685; older",
        "capturing graphs",
    ),
    Row(
        "graphs-end",
        STAGE,
        r"(?i)capture (target |draft )?(\w+ )?(\w+ )?(cuda|cpu) graph end",
        "model_runner_components/cuda_graph_setup.py:696; older",
        "graphs captured",
    ),
    # Those of a decode's own steps; a draft model and a prefill capture others.
    Row(
        "decode-graphs",
        STAGE,
        r"(?i)capture target (decode|verify)\b.*cuda graph end|capture cuda graph end",
        "model_runner_components/cuda_graph_setup.py:788; older",
        "decode graphs captured",
    ),
    Row("scheduler", STAGE, r"max_total_num_tokens=\d+, chunked_prefill_size=", "managers/scheduler.py:1269", "scheduler up"),
    Row("all-ranks", STAGE, r"Engine startup timings \(s\):", "entrypoints/engine.py:1118", "all ranks up"),
    Row("http", STAGE, r"Uvicorn running on http", "uvicorn/server.py", "HTTP server up"),
    Row(
        "warmup-begin",
        STAGE,
        r"Start of (pd|prefill|decode) disaggregation (mode )?warmup",
        "entrypoints/http_server.py:2505; older",
        "warming up",
    ),
    Row("follower", STAGE, r"Dummy health check server started", "utils/common.py:3624", "follower up"),
    Row(
        "router-http",
        STAGE,
        r"Starting server on ",
        "smg model_gateway/src/server.rs:1995; sglang-router src/server.rs:1018",
        "HTTP server up",
        roles=ROUTER,
    ),
)

OUTCOMES = (
    Row("ready", READY, r"The server is fired up and ready to roll!", "entrypoints/http_server.py:2600", "ready line"),
    Row(
        "warmup-passed",
        WARMUP_PASSED,
        r"Disaggregation warmup requests completed for all \S+ DP ranks|End of disaggregation warmup",
        "entrypoints/http_server.py:2517, 2520",
        "warm-up passed",
    ),
    Row(
        "warmup-passed-older",
        WARMUP_PASSED,
        r"End of (prefill|decode) disaggregation (mode )?warmup with status 200\b",
        "older",
        "warm-up passed",
    ),
    Row(
        "warmup-failed",
        WARMUP_FAILED,
        r"Disaggregation warmup failed",
        "entrypoints/http_server.py:2523",
        "warm-up failed",
        "the server prints its ready line after this all the same: look at what the schedulers logged before it",
    ),
    Row(
        "warmup-failed-older",
        WARMUP_FAILED,
        r"End of (prefill|decode) disaggregation (mode )?warmup with status (?!200\b)\d+",
        "older",
        "warm-up failed",
        "look at what the schedulers logged before it",
    ),
)

FATALS = (
    Row(
        "argument",
        FATAL,
        r"^[\w ./-]+: error: (unrecognized arguments|ambiguous option|the following arguments are required|argument )",
        "argparse, exit status 2",
        next="mend the flag in sglang_args or the role's or instance's args",
    ),
    Row(
        "port-taken",
        FATAL,
        r"error while attempting to bind on address",
        "uvicorn, exit status 3",
        next="ss -ltnp shows who holds the port; stop it or plan another port",
    ),
    Row(
        "bootstrap-port-taken",
        FATAL,
        r"Server error: \[Errno \d+\]",
        "disaggregation/common/conn.py:3326",
        next="ss -ltnp shows who holds the bootstrap port; the server would go on without one",
    ),
    Row(
        "bootstrap-gave-up",
        FATAL,
        r"failed to register to bootstrap server after \d+ retries",
        "disaggregation/common/conn.py:1661",
        next="see whether the bootstrap port answers on the server's own address",
    ),
    Row(
        "scheduler-exception",
        FATAL,
        r"(Scheduler|DataParallelController|DetokenizerManager|TokenizerManager) hit an exception",
        "managers/scheduler.py:6372 and its like",
        next="the first cause of the exception is what to mend",
        generic=True,
    ),
    Row(
        "child-failed",
        FATAL,
        r"Received sigquit from a child process|SIGQUIT received\.",
        "entrypoints/engine.py:1978; managers/tokenizer_manager.py:4074",
        next="look for the child's own lines above",
        generic=True,
    ),
    Row(
        "child-crashed",
        FATAL,
        r"Subprocess .* crashed with exit code|scheduler died during initialization",
        "utils/watchdog.py:216; entrypoints/engine.py:2006",
        next="exit code -9 is often the kernel's out-of-memory killer: journalctl -k",
        generic=True,
    ),
    Row(
        "initialization",
        FATAL,
        r"Initialization failed\.",
        "entrypoints/engine.py:2032; entrypoints/http_server.py:2533",
        next="look for the first error above",
        generic=True,
    ),
    Row(
        "watchdog",
        FATAL,
        r"watchdog timeout \(self\.watchdog_timeout=[^)]*soft=False",
        "utils/watchdog.py:153",
        next="a forward step hung; look at the GPU and its driver's messages: journalctl -k",
    ),
    Row(
        "memory-fraction",
        FATAL,
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        "model_executor/pool_configurator.py:96",
        next="free the GPU of other processes, or raise mem-fraction-static",
    ),
    Row(
        "graph-capture",
        FATAL,
        r"Capture cuda graph failed",
        "runner/decode_cuda_graph_runner.py:603",
        next="lower mem-fraction-static or cuda-graph-max-bs-decode",
    ),
    Row("gpu-memory", FATAL_AT_START, r"CUDA out of memory", "torch", next="free the GPU of other processes, or lower mem-fraction-static"),
    Row(
        "gpu-unbalanced",
        FATAL,
        r"The memory capacity is unbalanced\.",
        "distributed/bootstrap.py:445",
        next="another process holds memory on one of the GPUs: nvidia-smi",
    ),
    Row(
        "architecture",
        FATAL,
        r"Model architectures .* are not supported for now",
        "models/registry.py:64",
        next="this release has no implementation of the model: plan another engine version",
    ),
    Row(
        "transfer-missing",
        FATAL_AT_START,
        r"Please install (mooncake|NIXL)",
        "distributed/device_communicators/mooncake_transfer_engine.py:123; disaggregation/nixl/conn.py:546",
        next="the transfer library, or a system library that it needs (libibverbs1, librdmacm1, libnuma1), is missing: see the first cause",
    ),
    Row(
        "transfer-init",
        FATAL_AT_START,
        r"Mooncake Transfer Engine initialization failed|Mooncake memory registration failed|NIXL backend '[^']*' not found",
        "distributed/device_communicators/mooncake_transfer_engine.py:222, 153; disaggregation/nixl/conn.py:626",
        next="check the RDMA devices, the memlock limit, or plan mooncake_tcp",
    ),
    Row(
        "pair-mismatch",
        FATAL,
        r"(Page size|KV cache dtype|KV layout) mismatch:",
        "disaggregation/common/conn.py:1320",
        next="give prefill and decode the same page size, KV cache dtype and layout",
    ),
    Row(
        "nccl",
        FATAL_AT_START,
        r"NCCL error|Watchdog caught collective operation timeout",
        "torch, NCCL",
        next="run once with NCCL_DEBUG=INFO in the instance's env",
    ),
    Row(
        "router-port-taken",
        FATAL,
        r"Address already in use \(os error 98\)|failed to bind metrics server",
        "smg, sglang-router: exit status 1",
        next="ss -ltnp shows who holds the port or the metrics port",
        roles=ROUTER,
    ),
    Row("router-panic", FATAL, r"PanicException|panicked at ", "sglang-router (pyo3), smg", next="look at the lines above", roles=ROUTER),
)

NOTES = (
    Row("health-failed", NOTE, r"Health check failed\. Server couldn't get a response", "entrypoints/http_server.py:789"),
    Row("gc-failed", NOTE, r"post-warmup freeze_gc failed", "entrypoints/http_server.py:2569"),
    Row("stopping", NOTE, r"SIGTERM received\.", "managers/tokenizer_manager.py:3508"),
    Row("fallback-model", NOTE, r"falling back to Transformers implementation", "model_loader/utils.py:190"),
    Row("worker-given-up", NOTE, r"Failed job: type=AddWorker", "smg and sglang-router job queue", roles=ROUTER),
    Row("worker-step-failed", NOTE, r"Workflow failed|Step failed ", "smg and sglang-router workflow events", roles=ROUTER),
    Row("worker-bootstrap", NOTE, r"Bootstrap port did not accept a connection at registration", "smg", roles=ROUTER),
    Row("worker-health", NOTE, r"HTTP health check returned non-success status", "smg and sglang-router", roles=ROUTER),
)

TABLE = STAGES + OUTCOMES + FATALS + NOTES

#: The stages that end the start of what has no ready line: a router, and a rank above 0.
UP = ("router-http", "follower")

#: What the engine resolved for itself, as (name, value): in ``server_args=`` (entrypoints/engine.py:1185; older: a dataclass's
#: repr) and in the scheduler's line (managers/scheduler.py:1269).
RESOLVED = (
    re.compile(r"\b(disaggregation_mode)(?:': |=)'(\w+)'"),
    re.compile(r"\b(disaggregation_transfer_backend)(?:': |=)'(\w+)'"),
    re.compile(r"\b(max_total_num_tokens)=(\d+), chunked_prefill_size="),
    re.compile(r"max_running_requests=\d+, (context_len)=(\d+)"),
)

#: A progress bar of the weights (model_loader/weight_utils.py:1166, 1371): its percentage.
LOADING_BAR = re.compile(r"(?:Loading safetensors checkpoint shards|Multi-thread loading shards):\s+(\d+)%")

#: The engine's prefix (utils/common.py:2618) with the ranks that wrote the line.
PREFIX = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)?((?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\] ")
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def rows_of(role: str) -> tuple[Row, ...]:
    """The rows that can occur in the log of this role."""
    return tuple(row for row in TABLE if role in row.roles)


#: What a client sent or got, as the engine logs it with ``--log-requests`` (srt/utils/request_logger.py): text or JSON. Whatever
#: such a line says, the engine did not say it.
REQUEST = re.compile(r'^(?:\[[^\]]*\] )?(?:Receive|Finish): obj=|"event": ?"request\.(?:received|finished)')
