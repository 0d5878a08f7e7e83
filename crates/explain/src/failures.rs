//! The codes of failed commands and calls: `code` of an error in `--json`, in Rust and in Python.

use warpline_check::Rule;

macro_rules! failures {
    ($($code:literal $title:literal $requirement:literal $help:literal;)*) => {
        /// Every code of the runtime and of the command line.
        pub const RULES: &[Rule] = &[$(Rule {
            code: $code,
            title: $title,
            requirement: $requirement,
            help: $help,
        }),*];
    };
}

failures! {
    // Devices.
    "no-gpu" "GPU needed"
        "benchmarks, tuning and loaded kernels run on a GPU, not on the CPU executor"
        "select a GPU with `--device cuda:N`; `warpline devices` lists them";
    "bad-device-name" "invalid device name"
        "a device is `cpu`, `cuda` or `cuda:N`"
        "use `cuda:0` for the first GPU";
    "cuda-no-driver" "no CUDA driver"
        "a GPU needs `libcuda.so.1`, which the NVIDIA driver installs"
        "install the driver, or run with `--device cpu`";
    "cuda-missing-symbol" "incomplete CUDA driver"
        "the driver exports every function that the runtime calls"
        "update the NVIDIA driver";
    "cuda-driver-too-old" "CUDA driver too old"
        "the driver supports the PTX version of the kernels"
        "update the NVIDIA driver to the version that the message names";
    "cuda-no-such-device" "no such GPU"
        "N in `cuda:N` is less than the number of GPUs"
        "run `warpline devices`; `CUDA_VISIBLE_DEVICES` may hide a GPU";
    "cuda-unsupported-device" "unsupported GPU"
        "the GPU has a compute capability that a target of `warpline list --target` has"
        "select another GPU, or run with `--device cpu`";
    "cuda-device-fault" "device fault"
        "a kernel accesses only the memory of its launch, and it ends"
        "start a new process, because the CUDA context is lost; run the watchdog build, and `compute-sanitizer`";
    "cuda-out-of-memory" "out of GPU memory"
        "tensors and workspace fit into the free memory of the GPU"
        "free memory, or use a smaller problem";
    "cuda-driver-call" "failed driver call"
        "driver calls succeed"
        "the message names the call and the CUDA error";
    "cuda-jit-rejected" "PTX rejected by the driver"
        "the driver's JIT compiler accepts the printed PTX"
        "report it with the output of `warpline emit FAMILY --ptx`";
    "cuda-bad-argument" "invalid argument of a driver call"
        "grid, arguments and tensor maps meet the limits of the GPU"
        "the message names the argument and its limit";
    // Kernels.
    "build-failed" "kernel rejected by the builder"
        "a family declares kernels that follow the rules of the builder"
        "explain the code of the builder error in the message";
    "not-proved" "kernel not proved"
        "a kernel is proved before it runs"
        "run `warpline check FAMILY`, which prints the report";
    "ptx-target" "kernel of another target"
        "a kernel is printed for the target that it was checked for"
        "check it again with the same `--target`";
    "ptx-invalid-references" "invalid references in an unproved kernel"
        "every name in a kernel that is printed without a proof refers to a declaration"
        "repair the references that the message lists";
    "ptx-mismatch" "PTX does not match the kernel"
        "the printed PTX, read back, has the same actions in the same order as the kernel"
        "report it: this is a bug in the printer";
    "bad-ptxas" "unusable ptxas"
        "if `PTXAS` is set, it names a ptxas that runs"
        "set `PTXAS` to the path of a ptxas that runs, or unset it to use the pinned version";
    "ptxas-rejected" "PTX rejected by ptxas"
        "ptxas assembles the printed PTX"
        "report it with the output of `warpline emit FAMILY --ptx`";
    "ptxas-advisory" "advisory of ptxas"
        "ptxas keeps every instruction as written: it serializes no wgmma and ignores no `setmaxnreg`"
        "reduce the registers of the role, or split its accumulator";
    "jit-advisory" "advisory of the driver's compiler"
        "the driver keeps every instruction as written: it serializes no wgmma and ignores no `setmaxnreg`"
        "reduce the registers of the role, or split its accumulator";
    // Launches.
    "bad-launch" "invalid launch"
        "grid and arguments meet the bounds, lengths and alignments that the kernel declares"
        "the message names the argument and its declared bound";
    "bad-plan" "invalid plan"
        "a plan passes every parameter of its kernels once, with the declared type"
        "compare the steps of `Family::plan` with the parameters of the kernel";
    "fault" "fault on the CPU executor"
        "a kernel accesses its own memory, without races"
        "the report names the line; `warpline check` proves the absence of races";
    "deadlock" "deadlock on the CPU executor"
        "every warp runs to the end of its role"
        "the report lists the waits; `warpline check FAMILY` names the cycle";
    "hang" "hang on the GPU"
        "every warp of a watchdog build passes each wait within the limit"
        "the report lists the waits in the order of their start; check the first";
    "wrong-result" "wrong result"
        "every element of the output is within its error bound of the reference"
        "run with `--device cpu --timing late` to separate races from wrong arithmetic";
    "too-long" "run on the CPU executor too long"
        "a run on the CPU executor takes less time than the limit, unless the caller sets `simulate`"
        "use a smaller problem, a GPU, or set `simulate`";
    "host-memory" "out of host memory"
        "inputs, outputs and reference fit into host memory"
        "use a smaller problem";
    "jit-in-capture" "compilation during stream capture"
        "a kernel is loaded before a stream capture uses it"
        "run the op once before the capture, or call `Prepared::load`";
    "workspace-in-capture" "allocation during stream capture"
        "the workspace of an op exists before a stream capture uses it"
        "run the op once on this stream before the capture, or pass a workspace";
    "tune-in-capture" "tuning during stream capture"
        "tuning compiles and waits, so it runs outside of a stream capture"
        "tune before the capture; the captured call uses the winner";
    // Problems, configs and data.
    "bad-problem" "invalid problem"
        "extents, dtypes and options describe a computation of the family"
        "the message names the option and its legal values; `warpline run FAMILY --help` lists them";
    "unsupported" "unsupported call"
        "a kernel computes the call: its element types and extents"
        "use a supported element type; torch runs the call itself unless WARPLINE_STRICT=1";
    "unsupported-layout" "unsupported layout"
        "a kernel addresses the tensors of the call: their strides and alignment"
        "make the tensor that the message names contiguous";
    "bad-config" "invalid config"
        "schedule, tile shape, stages and registers fit together and fit the GPU"
        "remove the option that the message names; the heuristic then selects a legal value";
    "bad-data" "invalid input data"
        "the inputs have the names, shapes and dtypes of the problem"
        "compare the file with the inputs that `warpline run FAMILY --help` lists";
    "unknown-op" "unknown op"
        "an op has one of the names in `warpline.ops`"
        "use a name that the message lists";
    "unknown-parameter" "unknown parameter"
        "a keyword names a parameter of the op"
        "use a name that the message lists";
    // Tuning and benchmarks.
    "not-tuned" "no config measured"
        "at least one candidate of the family can be proved, compiled and measured"
        "the message gives the reason for each failed candidate";
    "no-candidate" "no candidate"
        "the options leave at least one candidate"
        "remove an option that fixes the config";
    "cache" "unusable cache of tuned configs"
        "the cache is a readable and writable file of this version"
        "run `warpline cache clear`, or set `WARPLINE_CACHE_DIR` to another folder; `WARPLINE_CACHE=off` turns it off";
    "no-point" "no valid point in a sweep"
        "at least one combination of `--vary` is a valid config"
        "the table gives the reason for each rejected point";
    "too-many-points" "sweep too large"
        "a sweep has at most the number of points that the message names"
        "vary fewer options, or fewer values";
    // The command line.
    "bad-usage" "invalid use of an option"
        "an option is given with the options that it needs, and without those that it excludes"
        "the message names the options; `--help` lists them";
    "bad-value" "invalid value of an option"
        "the value of an option is in its range"
        "the message names the range";
    "bad-name" "invalid crate name"
        "the name of a new crate is a legal Cargo package name that no path uses"
        "use letters, digits, `-` and `_`, and start with a letter";
    "cannot-write" "output not written"
        "output files and standard output are writable"
        "check the path, its permissions and the free space";
    "missing-argument" "missing argument"
        "every required argument is given"
        "`--help` lists the arguments";
    "unknown-option" "unknown option"
        "an option is one that `--help` lists"
        "use the spelling that the message suggests";
    "unknown-command" "unknown command"
        "a command is one that `warpline --help` lists"
        "use the spelling that the message suggests";
    "unknown-family" "unknown family"
        "a family is one that `warpline list` names"
        "use the spelling that the message suggests";
    "no-family" "missing family"
        "the command names a family"
        "name one of the families in the message";
    "unknown-suite" "unknown suite"
        "a suite of `bench` or `tune` is one that `--help` lists"
        "use a name that the message lists";
    "unknown-code" "unknown code"
        "a code is one that `warpline explain --list` prints"
        "copy the code from the report";
    "unexpected" "unexpected verdict in the corpus"
        "the checker refutes every broken kernel of the corpus by its rule and proves every repair"
        "report it: this is a bug in the checker";
    "no-checkout" "no Warpline checkout"
        "`warpline new` finds the sources that the new crate depends on"
        "pass `--warpline PATH` with the path of a checkout";
}
