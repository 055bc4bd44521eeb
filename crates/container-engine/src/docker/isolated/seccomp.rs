//! Which system calls a build may use: those of Docker's default profile, and those with which it makes
//! containers of its own. Docker's profile cannot be extended, only replaced.

use serde_json::{Value, json};

/// What Docker 20.10 allows a container without capabilities, without `io_uring`, and with `mount`,
/// `umount2` and `chroot`.
const CALLS: &str = include_str!("syscalls.txt");
/// The families of sockets: AF_UNIX, AF_INET and AF_INET6. The others reach parts of the kernel that no
/// build needs, or the host of a virtual machine (AF_VSOCK).
const FAMILIES: [u64; 3] = [1, 2, 10];
/// AF_NETLINK, for protocol 0 only, which names the interfaces.
const NETLINK: u64 = 16;
/// The flag for a new network namespace, in which a build would rule over the network parts of the kernel.
const CLONE_NEWNET: u64 = 0x4000_0000;
/// What `clone3` answers. Its flags are in memory, which a filter does not see; programs use `clone` then.
const ENOSYS: u32 = 38;

/// The profile, in the format that `--security-opt seccomp=` takes.
pub(super) fn profile() -> String {
    let calls: Vec<&str> = CALLS.split_whitespace().collect();
    let mut rules = vec![json!({"names": calls, "action": "SCMP_ACT_ALLOW"})];
    let is = |index: u32, value: u64| json!({"index": index, "value": value, "op": "SCMP_CMP_EQ"});
    rules.extend(FAMILIES.map(|family| -> Value {
        json!({"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [is(0, family)]})
    }));
    let netlink = [is(0, NETLINK), is(2, 0)];
    rules.push(json!({"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": netlink}));
    let without = json!([
        {"index": 0, "value": CLONE_NEWNET, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"},
    ]);
    let names = ["clone", "unshare"];
    rules.push(json!({"names": names, "action": "SCMP_ACT_ALLOW", "args": without}));
    rules.push(json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS}));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64",
             "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]},
        ],
        "syscalls": rules,
    })
    .to_string()
}
