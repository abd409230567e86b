# kbench on Ubuntu 24.04 with the CUDA libraries that it calls; the driver is the host's.
#   docker build -t kbench .
#   docker run --rm --gpus all --cap-add SYS_ADMIN -v "$PWD:/runs" kbench --model gpt2-large --seq 1024
# SYS_ADMIN is for hardware counters, where the driver keeps them for administrators; without it the rest is measured.
FROM ubuntu:24.04 AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates patchelf
COPY . /kbench
WORKDIR /kbench
RUN scripts/setup --cuda
RUN cmake --preset release -DKBENCH_CUDA=ON && cmake --build build/release
RUN cd build/release && cpack && mkdir /release && tar xzf kbench-*.tar.gz --strip-components=1 -C /release
RUN cp .deps/cuda/lib/libcublas.so.13 .deps/cuda/lib/libcublasLt.so.13 .deps/cuda/lib/libcupti.so.13 .deps/cuda/lib/libnvperf_*.so \
        /release/lib/kbench/ && cp -r .deps/cuda/licenses/nvidia_cublas-* .deps/cuda/licenses/nvidia_cuda_cupti-* /release/share/doc/kbench/licences/

FROM ubuntu:24.04
COPY --from=build /release /opt/kbench
ENV PATH=/opt/kbench/bin:$PATH NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /runs
ENTRYPOINT ["kbench"]
