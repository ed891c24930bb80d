import { spawn, type ChildProcess } from 'node:child_process'
import { afterEach, describe, expect, it } from 'vitest'
import { watchForSleep } from '../../../src/system/sleep-watch.ts'

const children: ChildProcess[] = []
const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
  for (const child of children.splice(0)) if (child.pid) process.kill(-child.pid, 'SIGKILL')
})

/** Starts a shell in a process group of its own. */
function start(script: string): ChildProcess & { readonly pid: number } {
  const child = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  children.push(child)
  return child as ChildProcess & { readonly pid: number }
}

function watch(pid: number) {
  const begun = performance.now()
  const { promise: slept, resolve } = Promise.withResolvers<number>()
  const stop = watchForSleep({ pid, quietMs: 100, onSleep: () => resolve(performance.now() - begun) })
  stops.push(stop)
  return { slept, stop }
}

const busy = 'while :; do :; done'
const wait = (ms: number) => new Promise<'nothing'>((resolve) => setTimeout(() => resolve('nothing'), ms))

describe('watchForSleep', { timeout: 20_000 }, () => {
  it('a sleeping program is reported after the quiet time and not before', async () => {
    const { slept } = watch(start('sleep 60').pid)
    expect(await slept).toBeGreaterThanOrEqual(100)
  })

  it.each([
    ['that works', busy],
    ['whose child works while it waits', `(${busy}); echo`],
    ['whose grandchild works', `(sh -c '(${busy}); echo'); echo`],
    ['that works and has a child that sleeps', `sleep 60 & ${busy}`],
  ])('a program %s is not reported', async (_what, script) => {
    const { slept } = watch(start(script).pid)
    expect(await Promise.race([slept, wait(600)])).toBe('nothing')
  })

  it('a program that sleeps after work is reported', async () => {
    const child = start(`i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; sleep 60`)
    const { slept } = watch(child.pid)
    let isDone = false
    child.stdout?.once('data', () => (isDone = true))
    await slept
    expect(isDone).toBe(true)
  })

  it('a missing program is not reported, and no program after the stop', async () => {
    const gone = watch(2 ** 22 + 1)
    const { slept, stop } = watch(start('sleep 60').pid)
    stop()
    expect(await Promise.race([gone.slept, slept, wait(400)])).toBe('nothing')
  })
})
