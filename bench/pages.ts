import { existsSync, readdirSync, statSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { enterWith, hasBrowser, launchBrowser, openPage } from '../test/support/browser.ts'
import { type Figure, type Measure, readRssMiB, single, spread } from './figure.ts'
import type { Rig } from './rig.ts'

const roundTripMs = 100
const openPages = 5
const bannerText = 'The host does not answer'

/** What the pages cost, and how quick they are behind a line with a round trip of 100 ms: sizes, first view, silence, an idle page, the daemon's memory. */
export const measurePages: Measure = async (rig) => [...measureSizes(), ...(await measureViews(rig))]

/** Compressed sizes of what `make build` made. */
function measureSizes(): Figure[] {
  return (['console', 'platform-console'] as const).flatMap((name) => {
    const folder = join(import.meta.dirname, '..', 'dist', name)
    if (!existsSync(folder)) return []
    const kB = (ending: string) =>
      readdirSync(folder)
        .filter((file) => file.endsWith(ending))
        .reduce((sum, file) => sum + statSync(join(folder, file)).size, 0) / 1_000
    return [
      { name: `${name}: script`, value: single(kB('.js.br')), unit: 'kB', target: '≤ 60 kB' },
      { name: `${name}: style`, value: single(kB('.css.br')), unit: 'kB', target: '≤ 8 kB' },
    ]
  })
}

async function measureViews(rig: Rig): Promise<Figure[]> {
  if (!hasBrowser) return []
  const rounds = rig.isQuick ? 1 : 7
  const daemon = await rig.startDaemon({ settings: { 'api.rateLimits.requestsPerSecond': 10 } })
  const line = await createLine(daemon.port)
  const browser = await launchBrowser()
  const found: View[] = []
  try {
    for (let round = 0; round <= rounds; round += 1) {
      rig.say(`pages: round ${round} of ${rounds}`)
      const seen = await measureView(browser, line, rig)
      // The first one warms browser and daemon.
      if (round > 0) found.push(seen)
    }
    const of = (pick: (each: View) => number) => spread(found.map(pick))
    return [
      { name: 'first view: requests', value: of((each) => each.requests), unit: '', target: '≤ 6' },
      { name: 'first view: bytes received', value: of((each) => each.kB), unit: 'kB', target: '≤ 80 kB' },
      {
        name: 'form at a round trip of 100 ms',
        value: of((each) => each.formS),
        unit: 's',
        target: '≤ 1.2 s',
      },
      {
        name: 'overview after the login',
        value: of((each) => each.overviewS),
        unit: 's',
        target: '≤ 1.5 s',
        note: 'with the check of the password by PAM',
      },
      ...(await measureSilence(browser, line, rig)),
      ...(await measureOpen(browser, line, daemon.pid, rig)),
    ]
  } finally {
    await browser.close()
    line.close()
    await daemon.stop()
  }
}

interface View {
  readonly requests: number
  readonly kB: number
  readonly formS: number
  readonly overviewS: number
}

async function measureView(browser: Browser, line: Line, rig: Rig): Promise<View> {
  const { page, context } = await openPage(browser)
  let requests = 0
  page.on('request', () => (requests += 1))
  const before = line.received()
  const formS = await seconds(async () => {
    await page.goto(line.address, { waitUntil: 'commit' })
    await page.locator('input[autocomplete="username"]').waitFor()
  })
  await page.waitForLoadState('load')
  const first = { requests, kB: (line.received() - before) / 1_000, formS }
  const overviewS = await seconds(async () => {
    await enter(page, rig)
    await isWhole(page)
  })
  await context.close()
  return { ...first, overviewS }
}

const enter = (page: Page, { accounts }: Rig) =>
  enterWith(page, accounts.good.userName, accounts.good.password)

/** Waits for the overview with all that it reads. */
async function isWhole(page: Page): Promise<void> {
  await page.getByText('This host', { exact: true }).waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
}

/** The banner of a host that does not answer: when it comes and when it goes. */
async function measureSilence(browser: Browser, line: Line, rig: Rig): Promise<Figure[]> {
  const { page, context } = await openPage(browser)
  await page.goto(line.address)
  await enter(page, rig)
  await isWhole(page)
  const banner = page.getByText(bannerText).first()
  const comes = () => seconds(() => banner.waitFor())
  const goes = () => seconds(() => banner.waitFor({ state: 'detached' }))
  line.cut()
  const cutS = await comes()
  line.mend()
  const goneS = await goes()
  await isWhole(page)
  await sleep(6_000)
  line.hold()
  const silentS = await comes()
  line.mend()
  await goes()
  await context.close()
  return [
    { name: 'banner after closed connections', value: single(cutS), unit: 's', target: '≤ 2 s' },
    { name: 'banner gone after an answer is possible', value: single(goneS), unit: 's', target: '≤ 3 s' },
    { name: 'banner after silence', value: single(silentS), unit: 's', target: '≤ 12 s' },
  ]
}

/** What five open pages cost the daemon, and one that nobody uses the line. */
async function measureOpen(browser: Browser, line: Line, pid: number, rig: Rig): Promise<Figure[]> {
  const idleSeconds = rig.isQuick ? 10 : 120
  await sleep(5_000)
  const without = await leastRssMiB(pid)
  const contexts = []
  for (let count = 0; count < openPages; count += 1) {
    const { page, context } = await openPage(browser)
    contexts.push(context)
    await page.goto(line.address)
    await enter(page, rig)
    await isWhole(page)
    // The next login begins within the rates that ship.
    await sleep(1_000)
  }
  rig.say(`pages: ${openPages} open for ${idleSeconds} s`)
  await sleep(5_000)
  const before = line.received()
  await sleep(idleSeconds * 1_000)
  const kB = ((line.received() - before) / 1_000 / openPages / idleSeconds) * 60
  const more = (await leastRssMiB(pid)) - without
  for (const context of contexts) await context.close()
  return [
    {
      name: 'an idle page, a minute',
      value: single(kB),
      unit: 'kB',
      target: '≤ 10 kB',
      note: 'TLS included',
    },
    { name: 'memory of the daemon for five open pages', value: single(more), unit: 'MiB', target: '≤ 8 MiB' },
  ]
}

/** The least of ten seconds: garbage that is not collected yet does not count. */
async function leastRssMiB(pid: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let count = 0; count < 10; count += 1) {
    least = Math.min(least, readRssMiB(pid))
    await sleep(1_000)
  }
  return least
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await work()
  return (performance.now() - begun) / 1_000
}

/** A line to a server on the loopback that is as slow as one across a country: half a round trip each way, a whole one to connect. */
interface Line {
  readonly address: string
  /** Bytes that clients have received so far. */
  received(): number
  /** Closes all connections, and each new one. */
  cut(): void
  /** Passes nothing on, and closes nothing. */
  hold(): void
  /** Passes all on again; what was held is gone with its connections. */
  mend(): void
  close(): void
}

async function createLine(port: number): Promise<Line> {
  let received = 0
  let state: 'open' | 'cut' | 'held' = 'open'
  const sockets = new Set<Socket>()
  const later = (ms: number, work: () => void) => {
    setTimeout(() => {
      if (state !== 'held') work()
    }, ms)
  }
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    // The other end says it as well.
    socket.on('error', () => socket.destroy())
  }
  const server = createServer((near) => {
    if (state === 'cut') return void near.destroy()
    keep(near)
    near.pause()
    later(roundTripMs, () => {
      const far = connect(port, '127.0.0.1')
      keep(far)
      far.setNoDelay(true)
      near.setNoDelay(true)
      near.on('data', (chunk) => later(roundTripMs / 2, () => void far.write(chunk)))
      far.on('data', (chunk) => {
        received += chunk.length
        later(roundTripMs / 2, () => void near.write(chunk))
      })
      near.on('close', () => later(roundTripMs / 2, () => far.destroy()))
      far.on('close', () => later(roundTripMs / 2, () => near.destroy()))
      near.resume()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const closeAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    address: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: () => received,
    cut: () => {
      state = 'cut'
      closeAll()
    },
    hold: () => (state = 'held'),
    mend: () => {
      if (state === 'held') closeAll()
      state = 'open'
    },
    close: () => {
      server.close()
      closeAll()
    },
  }
}
