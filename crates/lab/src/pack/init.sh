#!/atoll/busybox sh
# The first process of a guest. ttyS0 is the kernel's console, ttyS1 the program's output, ttyS2 its
# errors; ttyS3 tells the host, line by line, how far things are: "start RELEASE", "code N", "fail WHY".
/atoll/busybox mkdir -p /atoll/bin /proc /sys /dev /tmp /run /root
/atoll/busybox --install -s /atoll/bin
export PATH=/atoll/bin
chmod 1777 /tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts pts /dev/pts
mount -t cgroup2 cgroup /sys/fs/cgroup
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
ip link set lo up
hostname atoll-lab
for port in 1 2 3; do
    stty -F /dev/ttyS$port raw -echo
done

tell() {
    echo "$1" >/dev/ttyS3
    # Setting a terminal up waits until its output is out.
    stty -F /dev/ttyS3 raw -echo
}

if ! sh /atoll/prepare >/atoll/prepare.log 2>&1 </dev/null; then
    tell "fail $(tr '\n' ' ' </atoll/prepare.log)"
    poweroff -f
fi
input=/atoll/stdin
[ -e $input ] || input=/dev/null
if [ -e /atoll/terminal ]; then
    # shellcheck disable=SC2046
    stty -F /dev/ttyS1 sane $(cat /atoll/terminal)
    tell "start $(uname -r)"
    setsid sh -c 'exec sh /atoll/command </dev/ttyS1 >/dev/ttyS1 2>&1'
    code=$?
else
    tell "start $(uname -r)"
    sh /atoll/command <$input >/dev/ttyS1 2>/dev/ttyS2
    code=$?
fi
stty -F /dev/ttyS1 raw -echo
stty -F /dev/ttyS2 raw -echo
tell "code $code"
poweroff -f
