# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of the releases that this collection was written against; made by tests/unit/update_flag_catalogue.py.

``(package, version) -> (flags that stand alone, flags that take values)``, without the leading dashes.
"""

from __future__ import annotations

_TEXT: dict[tuple[str, str], tuple[str, str]] = {
    ("sglang", "0.5.23"): (
        """
        abort-on-priority-when-disabled allow-auto-truncate checkpoint-engine-wait-weights-before-ready constrained-json-disable-any-whitespace
        dcp-replicate-q-proj debug-cuda-graph delete-ckpt-after-loading disable-aiter-allreduce-fusion-in-decode
        disable-aiter-allreduce-fusion-in-prefill disable-attn-tp-gather disable-chunked-prefix-cache disable-cuda-graph disable-cuda-graph-padding
        disable-custom-all-reduce disable-decode-cuda-graph disable-fast-image-processor disable-flashinfer-autotune
        disable-flashinfer-cutlass-moe-fp4-allgather disable-hybrid-swa-memory disable-outlines-disk-cache disable-overlap-schedule
        disable-prefill-cuda-graph disable-priority-preemption disable-radix-cache disable-shared-experts-fusion disable-tokenizer-batch-decode
        disaggregation-decode-enable-offload-kvcache disaggregation-decode-enable-radix-cache disaggregation-enable-kv-checksum dllm-fdfo
        enable-adaptive-dispatch-to-encoder enable-aiter-allreduce-fusion enable-amd-monokernel enable-attn-tp-input-scattered
        enable-broadcast-mm-inputs-process enable-cache-report enable-cp-decode-attn-tp enable-cudagraph-gc enable-custom-logit-processor
        enable-decoder-swa-bounded-replay enable-deepseek-v4-fp4-indexer enable-dense-mlp-attn-tp enable-deterministic-inference enable-dp-attention
        enable-dp-attention-local-control-broadcast enable-dp-lm-head enable-draft-weights-cpu-backup enable-dsa-cache-layer-split
        enable-dsa-fused-indexer enable-dynamic-batch-tokenizer enable-dynamic-chunking enable-elastic-expert-backup
        enable-encoder-swa-bounded-replay enable-eplb enable-flashinfer-allreduce-fusion enable-flexkv enable-forward-pass-metrics
        enable-fp32-lm-head enable-fused-moe-sum-all-reduce enable-fused-qk-norm-rope enable-hicache enable-hierarchical-cache enable-hisparse
        enable-http-worker-reuseport enable-http2 enable-int8-mamba-checkpoint enable-kv-cache-sharding enable-layernorm-sp
        enable-layerwise-nvtx-marker enable-lean-attention enable-linear-replayssm enable-linear-replayssm-spec enable-linker-mla-dedup
        enable-lmcache enable-lora enable-lora-overlap-loading enable-mamba-cache-stochastic-rounding enable-megamoe-for-layernorm-sp
        enable-memory-saver enable-metrics enable-metrics-for-all-schedulers enable-mfu-metrics enable-mis enable-mixed-chunk enable-mm-global-cache
        enable-mscclpp enable-multi-layer-eagle enable-multimodal enable-nccl-nvls enable-nvidia-megakernel enable-p2p-check
        enable-page-major-kv-layout enable-paged-experts enable-pd-role-switch enable-pdmux enable-precise-embedding-interpolation enable-prefill-cp
        enable-prefill-delayer enable-prefix-mm-cache enable-priority-scheduling enable-profile-cuda-graph enable-quant-communications
        enable-request-time-stats-logging enable-response-store enable-return-aux-hidden-states enable-return-hidden-states
        enable-return-indexer-topk enable-return-routed-experts enable-scattered-sconv enable-session-radix-cache enable-shared-experts-attn-tp
        enable-single-batch-overlap enable-ssl-refresh enable-streaming-session enable-strict-thinking enable-symm-mem enable-tf32-matmul
        enable-tokenizer-batch-encode enable-torch-compile enable-torch-compile-debug-mode enable-torch-symm-mem enable-tp-lm-head-all-to-all
        enable-trace enable-two-batch-overlap enable-unified-cache-external-linker enable-unified-memory enable-w4a4-mxfp4-megamoe enable-waterfill
        enable-watermark enable-weights-cpu-backup encoder-only enforce-disable-flashinfer-allreduce-fusion enforce-shared-experts-fusion
        experts-shared-outer-loras export-metrics-to-file flashinfer-mla-disable-ragged grpc-mode incremental-streaming-output is-embedding
        language-model-only language-only log-requests lora-strict-loading lora-use-virtual-experts mlx-enable-sampling mm-enable-dp-encoder
        no-dcp-replicate-q-proj no-dllm-fdfo no-enable-decoder-swa-bounded-replay no-enable-dsa-fused-indexer no-enable-fused-qk-norm-rope
        no-enable-tf32-matmul no-enable-tp-lm-head-all-to-all no-experts-shared-outer-loras no-lora-strict-loading no-mm-enable-dp-encoder
        no-ple-offload-embedding no-speculative-enable-w4a4-mxfp4-megamoe ple-offload-embedding pre-warm-nccl prefill-only-disable-kv-cache
        quantize-and-serve remote-instance-weight-loader-start-seed-via-transfer-engine return-input-ids return-output-ids
        schedule-low-priority-values-first show-time-cost skip-server-warmup skip-tokenizer-init sleep-on-idle smg-grpc-mode speculative-adaptive
        speculative-dspark-align-verify-tokens-to-graph-tier speculative-enable-w4a4-mxfp4-megamoe speculative-use-block-verification
        speculative-use-rejection-sampling stream-response-default-include-usage strip-thinking-cache triton-attention-reduce-in-fp32
        trust-mm-content-hashes trust-remote-code trust-request-chat-template use-ray weight-loader-disable-mmap weight-loader-drop-cache-after-load
        weight-loader-prefetch-checkpoints
        """,
        """
        admin-api-key allowed-media-domains api-key asr-max-buffer-seconds asr-max-concurrent-sessions attention-backend
        attention-context-parallel-size attention-data-parallel-size attn-cp-size attn-dp-size base-gpu-id batch-notify-size bf16-gemm-backend
        boundary-reduction bucket-e2e-request-latency bucket-inter-token-latency bucket-time-to-first-token c128-page-size chat-template
        chunked-prefill-size completion-template config constrained-json-max-whitespace-cnt constrained-json-whitespace-pattern context-bucket
        context-length cp-strategy cpu-offload-gb crash-dump-folder cuda-graph-backend-decode cuda-graph-backend-prefill cuda-graph-bs-decode
        cuda-graph-bs-prefill cuda-graph-config cuda-graph-max-bs-decode cuda-graph-max-bs-prefill cuda-graph-max-seq-len-prefill
        cuda-graph-prefill-max-context custom-weight-loader data-parallel-size dcp-comm-backend dcp-size debug-tensor-dump-input-file
        debug-tensor-dump-layers debug-tensor-dump-output-folder decode-attention-backend decode-context-parallel-size decode-log-interval
        decoupled-spec-bind-endpoint decoupled-spec-connect-endpoints decoupled-spec-rank decoupled-spec-role decrypted-config-file
        decrypted-draft-config-file deepep-config deepep-dispatcher-output-dtype deepep-mode deepep-v2-mode default-chat-template-kwargs
        default-priority-value detokenizer-worker-num device disaggregation-bootstrap-port disaggregation-decode-allocation-policy
        disaggregation-decode-extra-slots disaggregation-decode-host-receive-threshold disaggregation-decode-polling-interval
        disaggregation-decode-retraction-backup disaggregation-ib-device disaggregation-mode disaggregation-transfer-backend dist-init-addr
        dist-timeout dllm-algorithm dllm-algorithm-config download-dir dp-size dsa-decode-backend dsa-paged-mqa-logits-backend dsa-prefill-backend
        dsa-topk-backend dsa-triton-union dsv4-attn-backend dsv4-prefill-backend dtype dwdp-size dynamic-batch-tokenizer-batch-size
        dynamic-batch-tokenizer-batch-timeout elastic-ep-backend elastic-ep-initial-size elastic-ep-join-mode elastic-ep-join-rank-offset
        elastic-ep-scale-timeout encoder-bootstrap-port encoder-register-urls encoder-transfer-backend encoder-urls engine-info-bootstrap-port ep
        ep-dispatch-algorithm ep-num-redundant-experts ep-size eplb-algorithm eplb-min-rebalancing-utilization-threshold
        eplb-rebalance-layers-per-chunk eplb-rebalance-num-iterations expert-balancedness-report-mode expert-distribution-recorder-buffer-size
        expert-distribution-recorder-mode expert-parallel-size export-metrics-to-file-dir extra-metric-labels fastapi-root-path file-storage-path
        flashinfer-a2a-dispatch-type flashinfer-allreduce-fusion-backend flashinfer-autotune-skip-ops flashinfer-mxfp4-moe-precision
        flexkv-config-file forward-hooks forward-pass-metrics-ipc-name forward-pass-metrics-worker-id fp4-gemm-backend fp8-gemm-backend fuseep-mode
        gated-launch-port gc-threshold gc-warning-threshold-secs generation-tokens-buckets gpu-id-step grammar-backend grpc-http-sidecar-port
        grpc-port grpc-response-timeout-secs hf-chat-template-name hicache-host-memory-fraction hicache-host-memory-mode hicache-io-backend
        hicache-mem-layout hicache-ratio hicache-size hicache-storage-backend hicache-storage-backend-extra-config hicache-storage-prefetch-policy
        hicache-storage-prefetch-retry-max-attempts hicache-storage-prefetch-retry-poll-interval hicache-write-policy
        hierarchical-sparse-attention-extra-config hisparse-config host http2-initial-connection-window-size http2-max-concurrent-streams
        image-processor-backend init-expert-location int8-mamba-ckpt-size json-model-override-args kt-cpuinfer kt-max-deferred-experts-per-token
        kt-method kt-num-gpu-experts kt-threadpool-count kt-weight-path kv-cache-dtype kv-canary kv-canary-real-data kv-canary-sweep-interval
        kv-events-config limit-mm-data-per-request linear-attn-backend linear-attn-decode-backend linear-attn-prefill-backend
        linear-attn-verify-backend linear-replayssm-cache-len lmcache-config-file load-balance-method load-format load-publish-endpoint
        load-snapshot-publish-interval log-level log-level-http log-requests-format log-requests-level log-requests-target lora-backend
        lora-drain-wait-threshold lora-eviction-policy lora-paths lora-target-modules mamba-backend mamba-cache-philox-rounds
        mamba-full-memory-ratio mamba-max-states-per-path mamba-radix-cache-strategy mamba-ssm-dtype mamba-track-interval max-ep-size
        max-loaded-loras max-lora-chunk-size max-lora-rank max-loras-per-batch max-mamba-cache-size max-prefill-tokens max-queued-requests
        max-running-requests max-total-tokens media-url-max-file-size-mb mem-fraction-static min-free-slots-delay mm-attention-backend
        mm-feature-transport mm-global-cache-backend mm-io-worker-num mm-preprocess-cache-size-mb mm-process-config mm-processor-worker-num model
        model-checksum model-config-parser model-impl model-loader-extra-config model-path modelexpress-config modelopt-checkpoint-restore-path
        modelopt-checkpoint-save-path modelopt-export-path modelopt-quant moe-a2a-backend moe-data-parallel-size moe-dense-tp-size moe-dp-size
        moe-runner-backend monokernel-backend mooncake-ib-device msprobe-dump-config nccl-init-addr nccl-port nnodes node-rank
        num-continuous-decode-steps num-reserved-decode-tokens numa-node offload-group-size offload-mode offload-num-in-group offload-prefetch-step
        optimistic-prefill-attempts otlp-service-name otlp-traces-endpoint page-size paged-experts-num-resident pdmux-config-path
        pipeline-parallel-size ple-offload-backend ple-offload-dir port pp-async-batch-depth pp-max-micro-batch-size pp-size
        preferred-sampling-params prefill-attention-backend prefill-decode-interval prefill-decode-interval-min-bs
        prefill-delayer-forward-passes-buckets prefill-delayer-max-delay-ms prefill-delayer-max-delay-passes prefill-delayer-queue-min-ratio
        prefill-delayer-token-usage-low-watermark prefill-delayer-wait-seconds-buckets prefill-kv-cache-dequant-dtype prefill-max-requests
        priority-scheduling-preemption-threshold prompt-tokens-buckets qsa-indexer-dtype quantization quantization-param-path radix-cache-backend
        radix-eviction-policy radix-eviction-policy-config random-seed reasoning-parser remote-instance-weight-loader-backend
        remote-instance-weight-loader-seed-instance-ip remote-instance-weight-loader-seed-instance-service-port
        remote-instance-weight-loader-send-weights-group-ports retraction-policy return-aux-hidden-state-layer-ids return-hidden-states-mode
        revision rl-on-policy-target rl-quant-profile sampling-backend sampling-defaults sampling-mask-max-tokens schedule-conservativeness
        schedule-policy scheduler-recv-interval served-model-name shared-experts-tp-size sidecar sidecar-args sm-group-num smg-http-sidecar-port
        soft-watchdog-timeout spec-trace-dir speculative-accept-threshold-acc speculative-accept-threshold-single speculative-adaptive-config
        speculative-algorithm speculative-attention-mode speculative-dflash-block-size speculative-domino-candidate-pool-size
        speculative-draft-attention-backend speculative-draft-kv-cache-dtype speculative-draft-load-format speculative-draft-model
        speculative-draft-model-path speculative-draft-model-quantization speculative-draft-model-revision speculative-draft-sink-size
        speculative-draft-window-size speculative-dsa-topk-backend speculative-dspark-block-size speculative-dspark-confidence-sts-path
        speculative-dspark-sps-table-path speculative-eagle-topk speculative-moe-a2a-backend speculative-moe-runner-backend
        speculative-ngram-capacity speculative-ngram-external-corpus-max-tokens speculative-ngram-external-corpus-path
        speculative-ngram-external-sam-budget speculative-ngram-match-type speculative-ngram-max-bfs-breadth speculative-ngram-max-trie-depth
        speculative-ngram-min-bfs-breadth speculative-num-draft-tokens speculative-num-steps speculative-token-map ssl-ca-certs ssl-certfile
        ssl-keyfile ssl-keyfile-password startup-weight-load-mode stream-interval swa-full-tokens-ratio swa-prefix-tails
        tbo-token-distribution-threshold tensor-parallel-size tokenizer-backend tokenizer-metrics-allowed-custom-labels
        tokenizer-metrics-custom-labels-header tokenizer-mode tokenizer-path tokenizer-worker-num tool-call-parser tool-server torch-compile-max-bs
        tp-size trace-modules triton-attention-num-kv-splits triton-attention-split-tile-size unified-cache-external-linker-backend
        unified-cache-external-linker-config uno-lora-path uvicorn-access-log-exclude-prefixes warmups watchdog-timeout watermark-config
        weight-cache-mode weight-cache-socket weight-cache-timeout weight-loader-prefetch-num-threads weight-version
        """,
    ),
    ("smg", "1.13.0"): (
        """
        control-plane-audit-enabled disable-circuit-breaker disable-health-check disable-load-monitoring disable-retries disable-tokenizer-autoload
        disable-worker-overload-protection dp-aware dp-minimum-tokens-scheduler enable-igw enable-mesh enable-rl enable-trace enable-wasm
        epd-disaggregation log-json log-mm-timing mm-allow-private-media-hosts mm-pixel-rdma no-remove-unhealthy-workers no-worker-auto-recovery
        oracle-external-auth pd-disaggregation priority-scheduler-enabled remove-unhealthy-workers router-disable-arg-fallback routing-key-override
        service-discovery sticky-sessions tenant-rate-limit-enabled tokenizer-cache-enable-l0 tokenizer-cache-enable-l1 trust-tenant-header
        upstream-http2 worker-auto-recovery worker-overload-protection worker-overload-shed
        """,
        """
        api-key assignment-mode backend balance-abs-threshold balance-rel-threshold balance-token-usage-threshold block-size
        bucket-adjust-interval-secs ca-cert-paths cache-boundaries cache-index cache-match-threshold cache-threshold cache-ttl-secs
        cb-failure-threshold cb-success-threshold cb-timeout-duration-secs cb-window-duration-secs chat-template client-cert-path client-key-path
        control-plane-api-keys cors-allowed-origins decode decode-policy decode-selector discovery-check-interval-secs discovery-file
        discovery-provider encode encode-policy encode-selector eviction-interval-secs header-read-timeout-secs health-check-endpoint
        health-check-interval-secs health-check-port health-check-timeout-secs health-failure-threshold health-success-threshold history-backend
        history-memory-max-items history-memory-max-responses history-memory-retention-secs host idle-connection-timeout-secs jemalloc-prof-dir
        job-queue-capacity job-queue-concurrency jwt-audience jwt-issuer jwt-jwks-uri jwt-role-mapping kv-connector-annotation
        kv-engine-id-annotation kv-index least-load-default-throughput least-load-kv-pressure-weight least-load-max-waiting-requests
        least-load-mean-prefill-tokens load-monitor-interval log-dir log-level max-background-responses max-buffered-request-bytes
        max-concurrent-requests max-idle-secs max-payload-size max-tree-size mcp-config-path mesh-advertise-host mesh-host mesh-peer-urls mesh-port
        mesh-server-name mesh-tls-ca-cert mesh-tls-cert mesh-tls-key mm-allowed-media-domains mm-per-request-image-limit mm-pixel-cache-mb
        mm-processing model model-alias model-id-from model-path multimodal-max-inflight-bytes multimodal-shm-min-bytes multimodal-tensor-transport
        oracle-connect-descriptor oracle-password oracle-pool-max oracle-pool-min oracle-pool-timeout-secs oracle-tns-alias oracle-username
        oracle-wallet-path otlp-traces-endpoint overlap-decay overload-token-usage-threshold parser pd-admission-wait-secs policy port
        postgres-db-url postgres-op-timeout-secs postgres-pool-max power-of-two-load-metric prefill prefill-max-inflight-requests-per-worker
        prefill-policy prefill-queue-size prefill-queue-timeout-secs prefill-selector prefix-hash-balance-abs-threshold prefix-hash-load-factor
        prefix-token-count priority-scheduler-config priority-scheduler-default-max-class priority-scheduler-tenant-metric-top-n
        prometheus-duration-buckets prometheus-host prometheus-port queue-size queue-timeout-secs rate-limit-tokens-per-second rdma-listen-ip
        rdma-slot-ttl-s reasoning-parser redis-op-timeout-secs redis-pool-max redis-retention-days redis-url request-id-headers request-timeout-secs
        retry-backoff-multiplier retry-initial-backoff-ms retry-jitter-factor retry-max-backoff-ms retry-max-retries rl-control-timeout-secs
        rl-fanout-concurrency router-selector routing-key-headers schema-config selection-accounting-ttl-ms selection-policy selection-temperature
        selector service-discovery-namespace service-discovery-port shutdown-grace-period-secs spill-abs-threshold spill-rel-threshold
        sse-keepalive-secs sticky-key-idle-secs storage-context-headers storage-hook-wasm-path stream-body-stall-timeout-secs tenant-api-key
        tenant-header-name tenant-rate-limit-config tls-cert-path tls-key-path tokenizer-cache-l0-max-entries tokenizer-cache-l0-max-memory
        tokenizer-cache-l1-max-memory tokenizer-path tool-call-parser upstream-pool-idle-timeout-secs worker-overload-token-usage
        worker-overload-waiting-requests worker-stale-secs worker-stall-secs worker-startup-check-interval worker-startup-delay
        worker-startup-timeout-secs worker-urls worker-warmup-blocks worker-warmup-divert-every worker-warmup-secs worker-warmup-share
        worker-warmup-thin-ratio worker-wedge-secs zmq-engine-count
        """,
    ),
    ("sglang-router", "0.3.2"): (
        """
        control-plane-audit-enabled disable-circuit-breaker disable-health-check disable-retries dp-aware enable-igw enable-trace mini-lb
        pd-disaggregation service-discovery tokenizer-cache-enable-l0 tokenizer-cache-enable-l1
        """,
        """
        api-key assignment-mode backend balance-abs-threshold balance-rel-threshold bucket-adjust-interval-secs ca-cert-paths cache-threshold
        cb-failure-threshold cb-success-threshold cb-timeout-duration-secs cb-window-duration-secs chat-template client-cert-path client-key-path
        control-plane-api-keys cors-allowed-origins decode decode-policy decode-selector eviction-interval-secs health-check-endpoint
        health-check-interval-secs health-check-timeout-secs health-failure-threshold health-success-threshold history-backend host jwt-audience
        jwt-issuer jwt-jwks-uri jwt-role-mapping log-dir log-level max-concurrent-requests max-idle-secs max-payload-size max-tree-size
        mcp-config-path model-path oracle-connect-descriptor oracle-password oracle-pool-max oracle-pool-min oracle-pool-timeout-secs
        oracle-tns-alias oracle-username oracle-wallet-path otlp-traces-endpoint policy port postgres-db-url postgres-pool-max prefill
        prefill-policy prefill-selector prometheus-duration-buckets prometheus-host prometheus-port queue-size queue-timeout-secs
        rate-limit-tokens-per-second reasoning-parser redis-pool-max redis-retention-days redis-url request-id-headers request-timeout-secs
        retry-backoff-multiplier retry-initial-backoff-ms retry-jitter-factor retry-max-backoff-ms retry-max-retries selector
        service-discovery-namespace service-discovery-port shutdown-grace-period-secs tls-cert-path tls-key-path tokenizer-cache-l0-max-entries
        tokenizer-cache-l1-max-memory tokenizer-path tool-call-parser worker-startup-check-interval worker-startup-timeout-secs worker-urls
        """,
    ),
}

CATALOGUE: dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = {
    release: (frozenset(bare.split()), frozenset(valued.split())) for release, (bare, valued) in _TEXT.items()
}
