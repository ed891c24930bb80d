import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContext, Request } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { buildPages, launchBrowser, logInWith, openPage, type WatchedPage } from './browser.ts'
import { noReserve } from './content-uploads.ts'
import { createFakeHost, type FakeHost } from './fake-host.ts'
import { hostBody } from './host-body.ts'
import { listeningPort } from './https-server.ts'
import { plantCluster } from './planted-cluster.ts'
import { playedInventory } from './played-inventory.ts'
import { prepareProgram } from './programs.ts'
import { createTestEdge, type TestEdge, type TestEdgeOptions } from './test-edge.ts'

interface OpenOptions extends NonNullable<Parameters<typeof openPage>[1]> {
  /** Whether the test turns the clock of the browser: see `turn`. */
  readonly isTurned?: boolean
  /** Milliseconds that this clock is ahead of that of the host. */
  readonly aheadMs?: number
}

interface StartOptions extends TestEdgeOptions {
  /** Run before the daemon starts; by default the host is empty. */
  readonly prepare?: (edge: TestEdge) => void
}

/**
 * The pages of a host in one browser for all tests of a `describe`; its windows are closed after each. The daemon is that of the last `start`, and
 * outlives its tests.
 */
export function useHostPages() {
  let pages: Awaited<ReturnType<typeof buildPages>>
  let browser: Awaited<ReturnType<typeof launchBrowser>>
  let running: { edge: TestEdge; options: TestEdgeOptions; host: FakeHost; folder: string } | undefined
  let port = 0
  let isStopped = true
  const edge = (): TestEdge => {
    if (!running) throw new Error('no daemon was started')
    return running.edge
  }
  const address = () => `https://127.0.0.1:${port}`

  async function stop(): Promise<void> {
    if (!isStopped) await edge().stop()
    isStopped = true
  }
  async function remove(): Promise<void> {
    await stop()
    if (!running) return
    await running.host.remove()
    await rm(running.folder, { recursive: true, force: true })
    running = undefined
  }

  beforeAll(async () => {
    pages = await buildPages()
    browser = await launchBrowser()
  })
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close()
  })
  afterAll(async () => {
    await browser.close()
    await remove()
    await pages.remove()
  })

  /** Requests of a browser that are not answered yet, without the stream and uploads. */
  const waiting = new WeakMap<BrowserContext, Set<Request>>()

  function countRequests(context: BrowserContext): void {
    const held = new Set<Request>()
    waiting.set(context, held)
    context.on('request', (request) => {
      if (!/\/(stream|uploads)\b/.test(request.url())) held.add(request)
    })
    for (const end of ['requestfinished', 'requestfailed'] as const)
      context.on(end as 'requestfinished', (request) => held.delete(request))
  }

  /** Waits until what a browser has asked for is answered. */
  async function isQuiet(context: BrowserContext): Promise<void> {
    // What its timers ask for has begun then.
    for (const page of context.pages()) await page.evaluate('0')
    await expect.poll(() => waiting.get(context)?.size).toBe(0)
  }

  async function open({ isTurned = false, aheadMs = 0, ...options }: OpenOptions = {}): Promise<WatchedPage> {
    const opened = await openPage(browser, options)
    countRequests(opened.context)
    if (isTurned) await opened.page.clock.install({ time: Date.now() + aheadMs })
    await opened.page.goto(address())
    return opened
  }

  return {
    edge,
    address,
    port: () => port,
    /** Folder of the files that the daemon serves. */
    pagesFolder: () => pages.folder,
    /** A daemon with an empty state, in the place of the one before. */
    async start({ prepare, ...more }: StartOptions = {}): Promise<void> {
      await remove()
      const host = await createFakeHost()
      const folder = await mkdtemp(join(tmpdir(), 'edgehostd-pages-state-'))
      const options: TestEdgeOptions = {
        host,
        stateDirectory: folder,
        pagesFolder: pages.folder,
        hostBody: await hostBody({ isClusterPhase: prepare === plantCluster }),
        inventoryProgram: playedInventory().program,
        content: noReserve,
        prepareProgram: prepareProgram(),
        ...more,
      }
      const made = await createTestEdge(options)
      running = { edge: made, options, host, folder }
      prepare?.(made)
      await made.daemon.start()
      isStopped = false
      port = listeningPort(made)
    },
    stop,
    /** Starts a daemon with the state of the stopped one, on its port. */
    async startAgain(): Promise<void> {
      await stop()
      if (!running) throw new Error('no daemon was started')
      running.edge = await createTestEdge({ ...running.options, port })
      await running.edge.daemon.start()
      isStopped = false
    },
    open,
    /** Logs in by the page. */
    async enter(name = 'alice', options: OpenOptions = {}): Promise<WatchedPage> {
      const opened = await open(options)
      await logInWith(opened.page, name, `${name} pass`)
      await opened.page.getByRole('navigation', { name: 'Pages' }).waitFor()
      return opened
    },
    /**
     * Turns the clocks of the host and of a browser that was opened for it. Reads end before and after it: a token that has just been
     * renewed would be too old at once.
     * @param ms of a browser without a look at its pages, as of one that slept
     */
    async turn({ context }: WatchedPage, ms: number): Promise<void> {
      await isQuiet(context)
      edge().clock.turn(ms)
      await context.clock.fastForward(ms)
      await isQuiet(context)
    },
    /** A further tab of the same browser, at a place behind `#`. */
    async openTab({ context }: WatchedPage, place = '/'): Promise<WatchedPage> {
      const tab = await openPage(browser, { context })
      await tab.page.goto(`${address()}/#${place}`)
      return tab
    },
  }
}
