import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildPages } from '../../support/browser.ts'
import { imageLayout, layoutTar, noReserve } from '../../support/content-uploads.ts'
import { hasFirefox, openFirefox, type FirefoxPage } from '../../support/firefox.ts'
import { hostBody } from '../../support/host-body.ts'
import { playedInventory } from '../../support/played-inventory.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'
import { listeningPort } from '../../support/https-server.ts'

describe.skipIf(!hasFirefox)('the pages of a host in Firefox', () => {
  let pages: Awaited<ReturnType<typeof buildPages>>
  let edge: TestEdge
  let firefox: FirefoxPage
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'edgehostd-firefox-files-'))
    pages = await buildPages()
    edge = await createTestEdge({
      pagesFolder: pages.folder,
      hostBody: await hostBody({ isClusterPhase: false }),
      inventoryProgram: playedInventory().program,
      content: noReserve,
    })
    await edge.daemon.start()
    firefox = await openFirefox()
  })
  afterEach(async () => {
    await firefox.close()
    await edge.stop()
    await pages.remove()
    await rm(folder, { recursive: true })
  })

  it('log in, visit each page, upload a bundle, log out', async () => {
    const address = `https://127.0.0.1:${listeningPort(edge)}`
    await firefox.open(address)
    await firefox.fill('input[autocomplete="username"]', 'alice')
    await firefox.fill('input[autocomplete="current-password"]', 'alice pass\n')
    await firefox.waitFor({ role: 'navigation', name: 'Pages' })

    for (const name of ['Cluster', 'Network', 'Access', 'Audit trail', 'System', 'Content'] as const) {
      await firefox.click({ role: 'link', name })
      await firefox.waitFor({ role: 'heading', name })
      await expect.poll(() => firefox.evaluate('document.activeElement.textContent')).toBe(name)
    }

    const file = join(folder, 'shop.tar')
    await writeFile(file, layoutTar(imageLayout(['blobs'], 'registry.example/shop/app:1.5.0')))
    await firefox.choose('input[accept^=".tar"]', file)
    await firefox.waitFor({ role: 'rowheader', name: 'shop' })

    // The session is in no cookie.
    expect(await firefox.evaluate('document.cookie')).toBe('')
    await firefox.click({ role: 'button', name: 'Log out' })
    await firefox.waitFor({ role: 'button', name: 'Log in' })
    expect(firefox.complaints()).toEqual([])
  })
})
