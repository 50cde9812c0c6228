# SPDX-License-Identifier: BSD-2-Clause
"""Parts of docs/ci.md and of the files that it names, as commands for a shell.

usage: page.py block LANGUAGE NUMBER | github WHICH | gitlab WHICH | pod init|containers
"""
import re
import shlex
import sys

import yaml


def block(language, number):
    text = open("docs/ci.md").read()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)[number]


def github():
    """The steps of the job: those of the action by its own file."""
    out = []
    for step in yaml.safe_load(block("yaml", 0))["jobs"]["rdma"]["steps"]:
        if "containers/action@" in step.get("uses", ""):
            action = yaml.safe_load(open("containers/action/action.yml"))
            assert set(step["with"]) <= set(action["inputs"]), step
            for inner in action["runs"]["steps"]:
                run = inner["run"].replace("${{ github.action_path }}", '"$ACTION"')
                for name, about in action["inputs"].items():
                    run = run.replace("${{ inputs.%s }}" % name, {"bundle": "$BUNDLE"}.get(name, about["default"]))
                assert "{{" not in run, run
                out += [run]
        elif "run" in step:
            out += ['PATH=$(tail -n 1 "$GITHUB_PATH"):$PATH', step["run"]]
    assert len(out) == 3, out
    return "\n".join(out)


def gitlab():
    page, template = yaml.safe_load(block("yaml", 1)), yaml.safe_load(open("containers/gitlab.yml"))
    job = page["rdma"]
    assert page["include"] == [{"local": "gitlab.yml"}] and job["variables"].keys() == {"DDPSESS_BUNDLE"}
    return "\n".join(template[job["extends"]]["before_script"] + job["script"])


def pod(which):
    spec = yaml.safe_load(open("containers/kubernetes-bundle.yaml"))["spec"]["template"]["spec"]
    allowed = {"restartPolicy", "automountServiceAccountToken", "securityContext", "volumes", "initContainers",
               "containers"}
    assert set(spec) == allowed, spec
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == 65534
    assert all(set(v) == {"name", "emptyDir"} for v in spec["volumes"])
    for c in spec["initContainers"] + spec["containers"]:
        assert set(c) <= {"name", "image", "command", "args", "securityContext", "volumeMounts"}, c
        rights = c["securityContext"]
        assert rights == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                          "capabilities": {"drop": ["ALL"]}}, rights
    mounts = {m["mountPath"]: m for m in spec["containers"][0]["volumeMounts"]}
    assert set(mounts) == {"/opt/ddpsess", "/tmp"} and mounts["/opt/ddpsess"]["readOnly"], mounts
    assert spec["initContainers"][0]["volumeMounts"] == [{"name": "ddpsess", "mountPath": "/to"}]
    return "\n".join(shlex.join(c["command"] + c.get("args", []))
                     for c in spec["initContainers" if which == "init" else "containers"])


what, args = sys.argv[1], sys.argv[2:]
print({"block": lambda: block(args[0], int(args[1])), "github": github, "gitlab": gitlab,
       "pod": lambda: pod(args[0])}[what]())
