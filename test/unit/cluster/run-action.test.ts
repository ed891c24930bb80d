import { expect, test } from 'vitest'
import { type StepActions, runAction, StepFailed, type StepOrder } from '../../../src/cluster/loop/step.ts'

const orders: StepOrder[] = []
const actions: StepActions = {
  greet: async (order, print) => {
    orders.push(order)
    print(`hello ${String(order.name)}`)
  },
  refuse: async () => {
    throw new StepFailed('kubeadm init failed\n  the port 6443 is taken\n')
  },
  break: async () => {
    throw new TypeError('x is undefined')
  },
}

async function run(name: string, input = '{}') {
  const lines: string[] = []
  const exitCode = await runAction(actions, name, input, (line) => lines.push(line))
  return { exitCode, lines }
}

test('an action gets its order, and its lines are printed', async () => {
  expect(await run('greet', '{"name":"edge"}')).toEqual({ exitCode: 0, lines: ['hello edge'] })
  expect(orders).toEqual([{ name: 'edge' }])
})

test('the last line of an action that fails is its reason, in one line and without a stack', async () => {
  expect(await run('refuse')).toEqual({
    exitCode: 1,
    lines: ['kubeadm init failed; the port 6443 is taken'],
  })
})

test('a defect of an action prints its stack before the reason', async () => {
  const { exitCode, lines } = await run('break')
  expect(exitCode).toBe(1)
  expect(lines[0]).toContain('run-action.test.ts')
  expect(lines.at(-1)).toBe('x is undefined')
})

test('an order that is no JSON is a failure with a reason', async () => {
  const { exitCode, lines } = await run('greet', '{')
  expect(exitCode).toBe(1)
  expect(lines.at(-1)).toContain('JSON')
})

test('an action that does not exist is refused by its name, also one that every object has', async () => {
  for (const name of ['', 'shutdown', 'constructor'])
    expect(await run(name)).toEqual({
      exitCode: 1,
      lines: [`step.cjs does not know the action "${name}"; this is a defect of edgehostd`],
    })
})
