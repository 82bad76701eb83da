"""Compiles kernels of Triton sources ahead of time, with no GPU: one JSON request on stdin.

    {"output": FOLDER, "jobs": [{"name": ..., "file": ..., "function": ..., "signature": [...],
     "constexprs": {...}, "options": {...}, "target": 90}, ...]}

Every job answers with one line of JSON on stdout, as soon as it is done: its name, and either the
facts of a launch, with `NAME.ptx` and `NAME.cubin` in the folder, or what went wrong. What Triton
and the source print is in `NAME.log`. The source is executed, as an import would.
"""

import importlib.util
import json
import os
import pathlib
import sys
import traceback


class Refusal(Exception):
    """A request that the source cannot serve; the second argument says what to do."""


def load(path, loaded={}):
    """The module in a file, executed once."""
    if path not in loaded:
        file = pathlib.Path(path)
        sys.path.insert(0, str(file.parent))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
        loaded[path] = module
    return loaded[path]


def find(module, name):
    """The jitted function of a name, without the tuners around it."""
    from triton.runtime.jit import JITFunction

    def inner(value):
        while not isinstance(value, JITFunction) and hasattr(value, "fn"):
            value = value.fn
        return value

    function = inner(getattr(module, name, None))
    if isinstance(function, JITFunction):
        return function
    known = [key for key, value in vars(module).items() if isinstance(inner(value), JITFunction)]
    there = ", ".join(f"`{key}`" for key in known) or "none"
    what = "is no @triton.jit function" if hasattr(module, name) else "is not in the source"
    raise Refusal(f"function `{name}` {what}", f"its @triton.jit functions: {there}")


def constant(value):
    """A constexpr as Python has it: `None` and names such as `tl.float16` come as text."""
    import triton.language as tl

    if value == "None":
        return None
    if isinstance(value, str) and value.startswith("tl."):
        found = tl
        for part in value.split(".")[1:]:
            found = getattr(found, part, None)
        if found is None:
            raise Refusal(f"there is no `{value}` in triton.language", None)
        return found
    return value


def bind(function, job):
    """Constexprs, signature and attributes by the names of the parameters."""
    given, types = dict(job["constexprs"]), list(job["signature"])
    constexprs, signature, attributes, missing, passed = {}, {}, {}, [], []
    for parameter in function.params:
        name = parameter.name
        if name in given:
            constexprs[name] = constant(given.pop(name))
            signature[name] = "constexpr"
        elif parameter.is_constexpr and parameter.has_default:
            constexprs[name] = parameter.default
            signature[name] = "constexpr"
        elif parameter.is_constexpr:
            missing.append(name)
        else:
            passed.append(name)
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise Refusal(f"constexpr {names} has no value", "give it in `constexprs`")
    if given:
        names = ", ".join(f"`{name}`" for name in given)
        known = ", ".join(f"`{name}`" for name in function.arg_names)
        raise Refusal(f"function `{function.__name__}` has no parameter {names}",
                      f"its parameters: {known}")
    if len(passed) != len(types):
        names = ", ".join(f"`{name}`" for name in passed)
        raise Refusal(f"the signature has {len(types)} types, the function takes {len(passed)}",
                      f"it takes, besides constexprs: {names}")
    for name, written in zip(passed, types):
        kind, _, hint = written.partition(":")
        signature[name] = kind
        if hint == "16":
            place = function.arg_names.index(name)
            attributes[(place,)] = [["tt.divisibility", 16]]
        elif hint:
            raise Refusal(f"`{written}`: the hint is `{hint}`",
                          "`:16` is the one hint here; what is 1 is a constexpr")
    # In the order of the parameters, which is that of the PTX's.
    signature = {name: signature[name] for name in function.arg_names}
    return constexprs, signature, attributes


def build(job, output):
    """Compiles one job; its facts."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = find(load(job["file"]), job["function"])
    constexprs, signature, attributes = bind(function, job)
    source = ASTSource(fn=function, signature=signature, constexprs=constexprs, attrs=attributes)
    target = GPUTarget("cuda", job["target"], 32)
    options = {name: constant(value) for name, value in job["options"].items()}
    known = triton.compiler.make_backend(target).parse_options({})
    for name in options:
        if not hasattr(known, name):
            raise Refusal(f"Triton has no option `{name}`",
                          "it has num_warps, num_stages, num_ctas, maxnreg, enable_fp_fusion, ...")
    compiled = triton.compile(source, target=target, options=options)
    metadata = compiled.metadata
    (output / f"{job['name']}.ptx").write_text(compiled.asm["ptx"])
    (output / f"{job['name']}.cubin").write_bytes(compiled.asm["cubin"])
    scratch = lambda kind: [getattr(metadata, f"{kind}_scratch_size", 0) or 0,
                            getattr(metadata, f"{kind}_scratch_align", 1) or 1]
    return {
        "symbol": metadata.name,
        "warps": metadata.num_warps,
        "blocks_per_cluster": metadata.num_ctas,
        "shared_bytes": metadata.shared,
        "global_scratch": scratch("global"),
        "profile_scratch": scratch("profile"),
        "cooperative": bool(getattr(metadata, "launch_cooperative_grid", False)),
    }


def sources(file):
    """The Python files that were read besides those that are installed."""
    import triton

    installed = [pathlib.Path(triton.__file__).parent, pathlib.Path(json.__file__).parent.parent]
    found = {file}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        own = not any(root in pathlib.Path(path).parents for root in installed)
        if path.endswith(".py") and own:
            found.add(path)
    return sorted(found)


def words(error):
    """What went wrong, as Triton words it, the innermost cause last."""
    causes = []
    while error is not None:
        causes.append("".join(traceback.format_exception_only(type(error), error)).strip())
        error = error.__cause__ or error.__context__
    return "\n".join(causes)


def answer(job, output):
    """One job's answer."""
    try:
        facts = build(job, output)
        return {"facts": facts, "sources": sources(job["file"])}
    except Refusal as refusal:
        message, hint = refusal.args
        return {"error": message, "hint": hint}
    except BaseException as error:  # a source may raise anything, SystemExit too
        return {"error": words(error), "hint": None}


def main():
    request = json.loads(sys.stdin.read())
    output = pathlib.Path(request["output"])
    answers = os.fdopen(os.dup(1), "w")
    try:
        import triton  # noqa: F401
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=answers, flush=True)
        return
    for job in request["jobs"]:
        log = os.open(output / f"{job['name']}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.close(log)
        print(json.dumps({"name": job["name"], **answer(job, output)}), file=answers, flush=True)


if __name__ == "__main__":
    main()
