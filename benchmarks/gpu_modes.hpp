#pragma once

#include <string>

#include "benchmarks/gpu_documents.hpp"

namespace hone::benchmark {

// The modes of gpu_benchmark. Each returns the program's exit code and throws std::runtime_error if
// the device itself cannot go on; all but compile() also if there is no GPU.

// Returns 0 if every score is 1.00 and no clocks differ by more than 2 %. Clocks are compared for
// calls of at least 10 us.
int aa(int pairs);

// Returns 0 if every document is ok.
int throughput(const gpu_corpus& corpus, int count);

// Writes one line per document to `file`: the unrounded score, the reference's and the candidate's
// time in us, the name. Returns 0 if every document is ok and scores differ from those that `file`
// had before by at most 1 % at the median and 3 % at worst.
int repeat(const gpu_corpus& corpus, const std::string& file, int count);

// Judges programs that crash, hang or cause sticky errors, and honest programs between them.
// Reports whether verdicts and scores of the honest programs stay as they were before, and how long
// the verification after each death takes. Returns 0 if all honest programs are ok, their scores
// change by at most 3 %, and every planted program ends as `crash` or `timeout`.
int deaths(const gpu_corpus& corpus, int count);

// Reports the GPU's memory in use while documents are verified over and over and one verification
// in eight is followed by a measurement. Returns 0 if memory grows by at most 64 MiB
// after the first half and all documents end as `ok` or `unstable`.
int memory(const gpu_corpus& corpus, int count);

// Compiles the host programs and cuda blocks of documents for Hopper, without a GPU. `files` are a
// task file and `count - 1` documents. Returns 0 if all compile.
int compile(int count, char** files);

}  // namespace hone::benchmark
