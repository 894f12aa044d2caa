# Runs rtla and noisefloor in turns in a guest, beside one delay each; prints what both say.
/busybox mkdir -p /bin /state
/busybox --install -s /bin
export PATH=/bin NOISEFLOOR_STATE=/state
tracing=/sys/kernel/tracing/instances/timerlat_top/tracing_on
insmod /delays.ko || exit
# Whether a program has ended.
is_over() {
    ! [ -e /proc/$1 ] || grep -q 'State:.Z' /proc/$1/status
}
# delay KIND PID CONDITION: delays a program that has begun to measure, until it ends. rtla does not see a
# delay that begins while its own thread runs: it leaves out expiries that are over then.
delay() {
    until eval "$3"; do
        is_over $2 && return
        sleep 0.05
    done
    sleep 0.3
    until is_over $2; do
        /program $1
        sleep 1.037
    done
    wait $2
}
for kind in thread irq off; do
    echo "DELAY $kind"
    /rtla timerlat top -c 0 -a 800 -i 0 -d 30s -q >/out 2>&1 &
    delay $kind $! 'grep -qs 1 $tracing && grep -qs timerlatu /proc/[0-9]*/comm'
    cat /out
    echo NOISEFLOOR
    /noisefloor latency -c 0 --fifo 90 --stop-above 800us -d 30 >/out 2>&1 &
    delay $kind $! 'grep -qs late/0 /proc/$2/task/*/comm'
    cat /out
done
