// Loaded into the daemon by --require: SIGUSR2 writes the longest stop of its event loop since the last one to the file that
// BENCH_LOOP_DELAY names, and the most time of a processor that it took between two turns; JSON, in milliseconds.
const { renameSync, writeFileSync } = require('node:fs')
const { monitorEventLoopDelay } = require('node:perf_hooks')
const { setInterval } = require('node:timers')

const file = process.env.BENCH_LOOP_DELAY
const histogram = monitorEventLoopDelay({ resolution: 1 })
histogram.enable()
let busiestMs = 0
let last = process.threadCpuUsage()
setInterval(() => {
  const now = process.threadCpuUsage()
  busiestMs = Math.max(busiestMs, (now.user + now.system - last.user - last.system) / 1e3)
  last = now
}, 1).unref()
process.on('SIGUSR2', () => {
  writeFileSync(`${file}.new`, JSON.stringify({ longestMs: histogram.max / 1e6, busiestMs }))
  renameSync(`${file}.new`, file)
  histogram.reset()
  busiestMs = 0
})
