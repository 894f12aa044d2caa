/* A kernel module that delays what runs on its CPU, for the comparison with rtla:
 *     echo "KIND MICROSECONDS" >/sys/module/delays/parameters/delay
 * irq: the function of a timer, in its interrupt; softirq: a tasklet after that; off: the writer, with
 * interrupts disabled. Those of a timer begin SOON after the request. */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/module.h>

#define SOON (700 * NSEC_PER_USEC)
#define LONGEST 20000

static struct hrtimer timer;
static bool in_softirq;
static u64 length;

static noinline void delay_spin(void)
{
	u64 end = ktime_get_ns() + length;

	while (ktime_get_ns() < end)
		cpu_relax();
}

static void delay_softirq(struct tasklet_struct *unused)
{
	delay_spin();
}
static DECLARE_TASKLET(tasklet, delay_softirq);

static enum hrtimer_restart delay_irq(struct hrtimer *unused)
{
	if (in_softirq)
		tasklet_hi_schedule(&tasklet);
	else
		delay_spin();
	return HRTIMER_NORESTART;
}

static noinline void delay_off(void)
{
	unsigned long flags;

	local_irq_save(flags);
	delay_spin();
	local_irq_restore(flags);
}

static int set_delay(const char *text, const struct kernel_param *unused)
{
	char kind[8];
	unsigned int us;

	if (sscanf(text, "%7s %u", kind, &us) != 2 || us > LONGEST)
		return -EINVAL;
	length = us * NSEC_PER_USEC;
	if (!strcmp(kind, "off")) {
		delay_off();
		return 0;
	}
	in_softirq = !strcmp(kind, "softirq");
	hrtimer_start(&timer, ns_to_ktime(SOON), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static const struct kernel_param_ops ops = { .set = set_delay };
module_param_cb(delay, &ops, NULL, 0200);

static int __init begin(void)
{
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer.function = delay_irq;
	return 0;
}

static void __exit end(void)
{
	hrtimer_cancel(&timer);
	tasklet_kill(&tasklet);
}

module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Delays of known kinds");
