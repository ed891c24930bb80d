import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createEventLoop } from '../../../src/metrics/room.ts'
import { writeExposition } from '../../../src/metrics/exposition.ts'
import { families } from '../../../src/edgehostd/declarations.ts'
import { prefersOpenMetrics } from '../../../src/metrics/routes.ts'
import type { Family, Sampled } from '../../../src/root/room.ts'

interface Metric extends Family {
  readonly name: string
  readonly sampled: Sampled
}
const family = (rest: Partial<Metric>): Metric => ({
  name: 'x_total',
  type: 'counter',
  help: 'Some help.',
  sampled: 5,
  ...rest,
})
const linesOf = async (format: 'prometheus' | 'openmetrics', { name, sampled, ...about }: Metric) =>
  (await writeExposition({ [name]: about }, { [name]: sampled }, format)).text.split('\n').filter(Boolean)

describe('the text format', () => {
  it('the text format has help, type and a line for each sample', async () => {
    expect(await linesOf('prometheus', family({}))).toEqual([
      '# HELP x_total Some help.',
      '# TYPE x_total counter',
      'x_total 5',
    ])
  })

  it('the text format escapes the values of labels', async () => {
    const odd = family({ sampled: [{ labels: { a: 'say "hi" \\ or\nbye' }, value: 1 }] })
    expect((await linesOf('prometheus', odd)).at(-1)).toBe('x_total{a="say \\"hi\\" \\\\ or\\nbye"} 1')
  })

  it('the buckets of a histogram are cumulative', async () => {
    const histogram = family({
      name: 'x_seconds',
      type: 'histogram',
      sampled: [{ labels: { r: '/' }, value: { upperBounds: [0.5, 1], counts: [3, 0, 2], sum: 9.25 } }],
    })
    expect((await linesOf('prometheus', histogram)).slice(2)).toEqual([
      'x_seconds_bucket{r="/",le="0.5"} 3',
      'x_seconds_bucket{r="/",le="1"} 3',
      'x_seconds_bucket{r="/",le="+Inf"} 5',
      'x_seconds_sum{r="/"} 9.25',
      'x_seconds_count{r="/"} 5',
    ])
  })

  it('a metric without a value keeps its help and type', async () => {
    expect(await linesOf('prometheus', family({ sampled: undefined }))).toHaveLength(2)
  })
})

it('OpenMetrics has a counter without _total, its sample with it, and an end', async () => {
  expect(await linesOf('openmetrics', family({}))).toEqual([
    '# HELP x Some help.',
    '# TYPE x counter',
    'x_total 5',
    '# EOF',
  ])
  // The next reader of the other format gets that format.
  expect((await linesOf('prometheus', family({})))[1]).toBe('# TYPE x_total counter')
})

describe('the table of metrics', () => {
  it.each(Object.entries(families))(
    'the name of %s follows the rules of Prometheus',
    (name, { type, help }) => {
      expect(name).toMatch(/^(edgehostd|process)_[a-z]+(_[a-z]+)*$/)
      expect(name.endsWith('_total')).toBe(type === 'counter')
      expect(help).toMatch(/\.$/)
    },
  )
})

describe('the format', () => {
  it.each([
    // The header of Prometheus 2.42.
    [
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
      true,
    ],
    ['application/openmetrics-text; version=1.0.0; charset=utf-8', true],
    ['application/openmetrics-text;q=0.3,text/plain;q=0.9', false],
    ['application/openmetrics-text;q=0', false],
    ['application/openmetrics-text;version=0.0.1', false],
    ['text/plain;version=0.0.4', false],
    ['*/*', false],
    ['', false],
    [';;,q=,,', false],
    [undefined, false],
  ])('the format for Accept %s is OpenMetrics: %s', (accept, expected) => {
    expect(prefersOpenMetrics(accept)).toBe(expected)
  })
})

describe('the lag of the event loop', () => {
  // Not performance: the faked one knows no event loop.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
  afterEach(() => void vi.useRealTimers())
  const counted = (loop: ReturnType<typeof createEventLoop>) =>
    loop.read().lag.counts.reduce((sum, count) => sum + count, 0)

  it('the lag is not measured before the metrics are read', () => {
    createEventLoop(() => Date.now())
    expect(vi.getTimerCount()).toBe(0)
  })

  it('the lag is measured each second after the metrics were read', async () => {
    const loop = createEventLoop(() => Date.now())
    loop.read()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(counted(loop)).toBe(5)
    expect(vi.getTimerCount()).toBe(1)
  })

  it('the lag is how late a timer fired', async () => {
    let heldUpMs = 0
    const loop = createEventLoop(() => Date.now() + heldUpMs)
    loop.read()
    heldUpMs = 300
    await vi.advanceTimersByTimeAsync(1_000)
    expect(loop.read().lag.sum).toBeCloseTo(0.3)
  })

  it('the lag is not measured from ten minutes after the last scrape until the next', async () => {
    const loop = createEventLoop(() => Date.now())
    loop.read()
    await vi.advanceTimersByTimeAsync(601_000)
    expect(vi.getTimerCount()).toBe(0)
    loop.read()
    expect(vi.getTimerCount()).toBe(1)
    loop.stop()
    expect(vi.getTimerCount()).toBe(0)
  })
})
