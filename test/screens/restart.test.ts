import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mediaTypes } from '../../src/content/format/media-types.ts'
import { hasBrowser, heading } from '../support/browser.ts'
import { layoutTar } from '../support/content-uploads.ts'
import { useHostPages } from '../support/host-pages.ts'
import { createLayout } from '../support/layouts.ts'
import { plantCluster } from '../support/planted-cluster.ts'

const mebibyte = 1024 ** 2
const bundlesPath = '/v1/edge-mgmt/content/bundles'

/** A bundle with an image of one layer. */
function bundleOf(layerBytes: number): Buffer {
  const layout = createLayout()
  const layer = layout.put(Buffer.alloc(layerBytes, 'a layer that does not matter '), mediaTypes.layer)
  const config = layout.putJson(
    { architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: [layer.digest] } },
    mediaTypes.config,
  )
  const manifest = { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [layer] }
  layout.list(layout.putJson(manifest, mediaTypes.manifest), {
    'org.opencontainers.image.ref.name': 'registry.example/shop/app:1.5.0',
  })
  return layoutTar(layout)
}

describe.skipIf(!hasBrowser)('the pages of a host across a restart of its daemon', () => {
  const { start, stop, startAgain, edge, address, enter, pagesFolder } = useHostPages()
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'edgehostd-restart-'))
    await start({ prepare: plantCluster })
  })
  afterAll(() => rm(folder, { recursive: true }))

  const note = (message: string) => edge().daemon.rooms.cluster.noteHost({ reason: 'HostBack', message })

  /** The messages of the events that the page of the cluster shows, the newest first. */
  const shown = (page: Page) => page.locator('ol.events li > span:last-child').allTextContents()

  it('no event is lost or twice, states are read anew, and the banner goes', async () => {
    const { page } = await enter()
    await page.goto(`${address()}/#/cluster`)
    note('before 1')
    note('before 2')
    await page.getByText('before 2').waitFor()
    await stop()
    await page.getByText('The host does not answer').first().waitFor({ timeout: 10_000 })
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await startAgain()
    note('after 1')
    note('after 2')
    await page.getByText('after 2').waitFor()
    await page.getByText('The host does not answer').first().waitFor({ state: 'detached' })
    await expect.poll(() => asked).toContain('/v1/edge-mgmt/cluster/details')
    const messages = (await shown(page)).filter((each) => /^(before|after) /.test(each))
    expect(messages).toEqual(['after 2', 'after 1', 'before 2', 'before 1'])
    expect(await page.getByText('was started').count()).toBe(2)
  })

  it('a reply that breaks off is asked for anew, and an action whose reply breaks off says so', async () => {
    const { page } = await enter()
    // The connection breaks in the middle of the replies for a path, as where the daemon is killed while it answers.
    await page.evaluate(`{
      const whole = fetch
      globalThis.fetch = async (path, options) => {
        const reply = await whole(path, options)
        if (!path.includes(globalThis.broken)) return reply
        const text = await reply.text()
        const body = new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode(text.slice(0, text.length / 2)))
            controller.error(new TypeError('network error'))
          },
        })
        return new Response(body, { status: reply.status, headers: reply.headers })
      }
    }`)
    const breakOff = (path: string) => page.evaluate(`globalThis.broken = ${JSON.stringify(path)}`)
    const failures: string[] = []
    page.on('pageerror', ({ message }) => failures.push(message))
    const asked = page.waitForResponse(`**${bundlesPath}`)
    await breakOff(bundlesPath)
    await page.goto(`${address()}/#/content`)
    await asked
    await page.waitForResponse(`**${bundlesPath}`)
    await breakOff('no path')
    await page.getByText('No content on this host').waitFor()
    await page.goto(`${address()}/#/audit`)
    await breakOff('/audits/verify')
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByRole('alert').getByText('The host does not answer').waitFor()
    expect(failures).toEqual([])
  })

  it('a new version of the pages is said when the daemon has been restarted with it, and can be loaded', async () => {
    const { page } = await enter()
    const words = page.getByText('The host has a new version of this page.')
    await page.getByText('This host', { exact: true }).waitFor()
    await stop()
    await page.getByText('The host does not answer').first().waitFor()
    await startAgain()
    await page.getByText('The host does not answer').first().waitFor({ state: 'detached' })
    // It was compared, and is the same.
    await heading(page).waitFor()
    expect(await words.count()).toBe(0)
    await stop()
    await page.getByText('The host does not answer').first().waitFor()
    await appendFile(join(pagesFolder(), 'index.html'), '<!-- the next version -->')
    await startAgain()
    await words.waitFor()
    await page.getByRole('button', { name: 'Load it' }).click()
    await page.getByText('This host', { exact: true }).waitFor()
    expect(await words.count()).toBe(0)
  })

  it('an upload of 64 MiB goes on after a restart by itself, and after a reload with the same file, and sends nothing twice', async () => {
    const file = join(folder, 'shop.tar')
    const content = bundleOf(64 * mebibyte)
    await writeFile(file, content)
    const { page } = await enter()
    let sent = 0
    let pieces = 0
    page.on('request', (request) => {
      const [, from, to] = /^bytes (\d+)-(\d+)/.exec(request.headers()['content-range'] ?? '') ?? []
      if (to !== undefined) sent += Number(to) + 1 - Number(from)
    })
    page.on('response', (response) => {
      if (response.request().method() === 'PATCH' && response.status() === 204) pieces += 1
    })
    // The page asks before it is left.
    page.on('dialog', (dialog) => void dialog.accept())
    // A connection with an end: the test is quicker than a local one.
    await page.route('**/blobs/sha256:*', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 300))
      await route.continue()
    })
    await page.goto(`${address()}/#/content`)
    await page.locator('input[accept^=".tar"]').setInputFiles(file)
    await expect.poll(() => pieces, { interval: 20 }).toBeGreaterThanOrEqual(4)
    await stop()
    await page.getByText('The host does not answer').first().waitFor()
    const before = pieces
    await startAgain()
    await expect.poll(() => pieces, { interval: 20 }).toBeGreaterThanOrEqual(before + 2)
    await page.reload()
    await page.getByText('Unfinished').first().waitFor()
    expect(await page.getByText('Published ·').count()).toBe(0)
    await page.locator('input[accept^=".tar"]').setInputFiles(file)
    await page.getByText('Published ·').waitFor({ timeout: 60_000 })
    await page.getByRole('rowheader', { name: 'shop', exact: true }).waitFor()
    // Of each break at most one piece, and of the reload nothing that the host had.
    expect(sent).toBeGreaterThanOrEqual(64 * mebibyte)
    expect(sent).toBeLessThanOrEqual(content.length + 2 * 8 * mebibyte)
  })
})
