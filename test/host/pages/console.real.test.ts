import { createServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  accessibilityProblems,
  allRead,
  hasBrowser,
  heading,
  logInWith,
  sidewaysScroll,
} from '../../support/browser.ts'
import { imageLayout, layoutTar } from '../../support/content-uploads.ts'
import { clusterDefinition, infrastructure } from '../../support/cluster-definitions.ts'
import { useHostPages } from '../../support/host-pages.ts'
import { writeLayoutFolder } from '../../support/layout-files.ts'
import { plantCluster } from '../../support/planted-cluster.ts'
import { sessionsPath } from '../../support/test-edge.ts'

/** The wait after too many failures: longer than any machine takes to try once more. */
const waitSeconds = 600

const pageNames = [
  ...['', 'cluster', 'cluster/create', 'content', 'network', 'access', 'audit'],
  ...['system', 'system/configuration', 'system/diagnosis', 'more'],
] as const

describe.skipIf(!hasBrowser)('the pages of a host in a browser', () => {
  const { start, stop, edge, address, port, open, openTab, enter } = useHostPages()

  it('a wrong password is refused, a further try waits for its countdown, then the right one enters', async () => {
    /** Milliseconds that the clocks of the host have been turned on. */
    let turned = 0
    await start({
      guard: { delayAfterFailures: 2, firstDelaySeconds: waitSeconds },
      monotonic: () => performance.now() + turned,
    })
    const { page } = await open()
    await page.clock.install()
    for (let tries = 0; tries < 2; tries += 1) {
      const refused = page.waitForResponse((reply) => reply.status() === 401)
      await logInWith(page, 'alice', 'wrong')
      await refused
      // The page has taken the refusal when the field is empty again.
      await expect.poll(() => page.getByLabel('Password', { exact: true }).inputValue()).toBe('')
      await page.getByRole('alert').getByText('User name or password is wrong').waitFor()
    }
    await logInWith(page, 'alice', 'alice pass')
    await page.getByRole('alert').getByText('The next try is possible in').waitFor()
    const button = page.getByRole('button', { name: 'Log in' })
    expect(await button.isDisabled()).toBe(true)
    turned += (waitSeconds + 1) * 1_000
    await page.clock.fastForward((waitSeconds + 1) * 1_000)
    await expect.poll(() => button.isDisabled()).toBe(false)
    await logInWith(page, 'alice', 'alice pass')
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    expect(await page.context().cookies()).toEqual([])
  })

  describe('with no cluster', () => {
    beforeAll(() => start())

    it('the examination of a page names what is wrong with it', async () => {
      const { page } = await open()
      await page.getByLabel('User name').waitFor()
      await page.evaluate("document.querySelector('main, form').append(new Image(9, 9))")
      expect(await accessibilityProblems(page)).toEqual(['image-alt: img[width="9"]'])
    })

    it('an expired password is replaced at the login', async () => {
      const { page } = await open()
      await logInWith(page, 'fresh', 'fresh pass')
      await page.getByText('Your password has expired').waitFor()
      await page.getByLabel('New password').fill('a better pass')
      await page.getByRole('button', { name: 'Set the new password' }).click()
      await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    })

    it('by the keyboard alone one logs in and walks through the pages', async () => {
      const { page } = await open()
      await page.getByLabel('User name').waitFor()
      await page.keyboard.type('alice')
      await page.keyboard.press('Tab')
      await page.keyboard.type('alice pass')
      await page.keyboard.press('Enter')
      for (const name of ['Content', 'Cluster']) {
        const link = page.getByRole('link', { name, exact: true })
        await link.waitFor()
        await link.focus()
        await page.keyboard.press('Enter')
        await expect.poll(() => page.evaluate<string>('document.activeElement.textContent')).toBe(name)
        // It stays there when the page has been read.
        await expect.poll(() => page.locator('.skeleton').count()).toBe(0)
        await expect.poll(() => page.evaluate<string>('document.activeElement.textContent')).toBe(name)
      }
    })

    // A tablet, the dark look and the other language: `make screens`.
    it.each(['desktop', 'phone'] as const)(
      'each page has no violation of accessibility or policy, no error and no sideways scrolling: %s',
      async (viewport) => {
        const { page, complaints } = await open({ viewport })
        await page.getByLabel('User name').waitFor()
        expect(await accessibilityProblems(page)).toEqual([])
        await logInWith(page, 'alice', 'alice pass')
        await page.getByRole('navigation', { name: 'Pages' }).waitFor()
        for (const name of pageNames) {
          await page.goto(`${address()}/#/${name}`)
          await allRead(page)
          expect([name, await accessibilityProblems(page)]).toEqual([name, []])
          expect([name, await sidewaysScroll(page)]).toEqual([name, 0])
        }
        expect(complaints()).toEqual([])
      },
    )

    it('a viewer sees what only administrators may do, turned off', async () => {
      const { page, complaints } = await enter('bob')
      await page.goto(`${address()}/#/system`)
      const reboot = page.getByRole('button', { name: 'Reboot' })
      await reboot.waitFor()
      expect(await reboot.isDisabled()).toBe(true)
      expect(await reboot.getAttribute('title')).toBe('Only administrators can do this.')
      expect(complaints()).toEqual([])
    })

    /** Ends the sessions of the browser. */
    async function endSessions(): Promise<void> {
      const { access } = await edge().login('alice')
      const list = await edge().get(sessionsPath, access)
      for (const { uid, isCurrent } of list.json<{ items: { uid: string; isCurrent: boolean }[] }>().items)
        if (!isCurrent)
          await edge().app.inject({
            method: 'DELETE',
            url: `${sessionsPath}/${uid}`,
            headers: { authorization: access },
          })
    }

    it('a session that was ended elsewhere leaves the page below a login, which goes on there', async () => {
      const { page } = await enter()
      await page.goto(`${address()}/#/access`)
      await page.getByText('this one').waitFor()
      await page.getByRole('button', { name: 'End…' }).first().click()
      const asked = page.getByRole('dialog', { name: 'End the session' })
      await asked.waitFor()
      await endSessions()
      const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
      await asked.getByRole('button', { name: 'End' }).click()
      await dialog.waitFor({ timeout: 60_000 })
      // A browser lets a page refuse the first Escape alone.
      for (let press = 0; press < 4; press += 1) await page.keyboard.press('Escape')
      await dialog.getByLabel('Password', { exact: true }).fill('alice pass')
      await dialog.getByRole('button', { name: 'Log in' }).click()
      await dialog.waitFor({ state: 'detached' })
      expect(page.url()).toBe(`${address()}/#/access`)
    })

    it('another user who logs in in another tab sees nothing of the former one, in a hidden tab neither', async () => {
      const tab = await enter()
      const { page } = tab
      await page.goto(`${address()}/#/audit`)
      await page.getByRole('heading', { level: 1, name: 'Audit trail' }).waitFor()
      await page.evaluate(`
        Object.defineProperty(document, 'hidden', { value: true })
        document.dispatchEvent(new Event('visibilitychange'))`)
      await endSessions()
      const second = await openTab(tab, '/audit')
      await logInWith(second.page, 'bob', 'bob pass')
      await second.page.getByText('Only administrators').first().waitFor()
      await page.getByText('Only administrators').first().waitFor()
      expect(await page.getByText('alice').count()).toBe(0)
    })

    it('a new tab has the session of the others, a reload keeps it, and a logout ends it in all', async () => {
      const tab = await enter()
      const { page } = tab
      const second = await openTab(tab, '/content')
      await second.page.getByRole('heading', { level: 1, name: 'Content' }).waitFor()
      await Promise.all([page.reload(), second.page.reload()])
      await second.page.getByRole('heading', { level: 1, name: 'Content' }).waitFor()
      await heading(page).waitFor()
      await page.getByRole('button', { name: 'Log out' }).click()
      for (const each of [page, second.page]) await each.getByLabel('User name').waitFor()
    })

    it('a bundle is uploaded and published, and the same file again sends nothing', async () => {
      const { page } = await enter()
      await page.goto(`${address()}/#/content`)
      const folder = await mkdtemp(join(tmpdir(), 'edgehostd-bundle-'))
      const file = join(folder, 'shop <b>1.tar')
      await writeFile(file, layoutTar(imageLayout(['blobs'], 'registry.example/shop/app:1.5.0')))
      await page.locator('input[accept^=".tar"]').setInputFiles(file)
      await page.getByText('Published ·').waitFor({ timeout: 60_000 })
      // The name of the file stays text.
      await page.getByRole('rowheader', { name: 'shop <b>1' }).waitFor()
      expect(await page.locator('main b').count()).toBe(0)
      await page.getByRole('button', { name: 'Close' }).click()
      await page.locator('input[accept^=".tar"]').setInputFiles(file)
      await page.getByText('were on the host already').waitFor()
      await rm(folder, { recursive: true })
    })

    it('a bundle that is packed is sent in one piece, and a folder by its files', async () => {
      const { page } = await enter()
      await page.goto(`${address()}/#/content`)
      const folder = await mkdtemp(join(tmpdir(), 'edgehostd-bundle-'))
      const packed = join(folder, 'packed.tar.gz')
      await writeFile(packed, gzipSync(layoutTar(imageLayout(['packed'], 'registry.example/shop/packed:1'))))
      await page.locator('input[accept^=".tar"]').setInputFiles(packed)
      await page.getByText('Published ·').waitFor({ timeout: 60_000 })
      await page.getByRole('rowheader', { name: 'packed', exact: true }).waitFor()
      await page.getByRole('button', { name: 'Close' }).click()
      const broken = join(folder, 'broken.tar.zst')
      await writeFile(broken, 'no archive')
      await page.locator('input[accept^=".tar"]').setInputFiles(broken)
      await page.locator('.uploading.bad').waitFor()
      await page.getByRole('button', { name: 'Close' }).click()
      const layout = join(folder, 'a folder')
      writeLayoutFolder(layout, imageLayout(['folder'], 'registry.example/shop/folder:1'))
      await page.getByLabel('Choose a folder with an OCI image layout').setInputFiles(layout)
      await page.getByText('Published ·').waitFor({ timeout: 60_000 })
      await page.getByRole('rowheader', { name: 'a folder', exact: true }).waitFor()
      await rm(folder, { recursive: true })
    })

    it('a definition is uploaded, its values are asked for, and the host names all that is in the way', async () => {
      const { page, complaints } = await enter()
      await page.goto(`${address()}/#/cluster/create`)
      await page.getByText('No definition on this host').waitFor()
      await page.getByLabel('Definition, .tgz or .tar.zst').setInputFiles({
        name: 'line.tgz',
        mimeType: 'application/gzip',
        buffer: clusterDefinition(infrastructure, [
          { name: 'replicas', displayName: 'Replicas', format: 'number', defaultValue: '1' },
          { name: 'token', displayName: 'Token', required: true, isSensitive: true },
        ]),
      })
      await page.getByRole('button', { name: 'Upload' }).click()
      await page.getByLabel('Name of the cluster').fill('line-7')
      expect(await page.getByLabel(/^Replicas/).inputValue()).toBe('1')
      await page.getByRole('button', { name: 'Check' }).click()
      await page.getByText('problems are in the way').waitFor({ timeout: 60_000 })
      expect(await page.getByText('variable token is required').count()).toBe(1)
      expect(await accessibilityProblems(page)).toEqual([])
      // Another request has not been checked.
      await page.getByLabel(/^Token/).fill('a-secret')
      await page.getByText('problems are in the way').waitFor({ state: 'detached' })
      expect(complaints()).toEqual([])
    })
  })

  it('the pages of a cluster: state, applications, revisions, access, and a change that is checked', async () => {
    await start({ prepare: plantCluster })
    const { page, complaints } = await enter()
    for (const [name, shown] of [
      ['', 'Events'],
      ['/applications', 'cluster get'],
      ['/revisions', 'creation · alice'],
      ['/access', 'Certificates of Kubernetes'],
    ] as const) {
      await page.goto(`${address()}/#/cluster${name}`)
      await page.getByText(shown).first().waitFor()
      expect([name, await accessibilityProblems(page)]).toEqual([name, []])
      expect([name, await sidewaysScroll(page)]).toEqual([name, 0])
    }
    await page.goto(`${address()}/#/cluster/change`)
    await page.getByText('the present one').waitFor()
    expect(complaints()).toEqual([])
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText(/in the way|Nothing differs/).waitFor({ timeout: 60_000 })
    expect(await accessibilityProblems(page)).toEqual([])
  })

  it('a host that does not answer is said, what was read stays, and what would change it is off', async () => {
    await start()
    const { page } = await enter()
    await page.getByText('This host', { exact: true }).waitFor()
    await stop()
    // Something else has the port: it closes each connection.
    const closing = createServer((socket) => socket.destroy()).listen(port(), '127.0.0.1')
    await page.getByText('The host does not answer').first().waitFor({ timeout: 60_000 })
    expect(await page.getByText('This host', { exact: true }).isVisible()).toBe(true)
    await page.evaluate(`location.hash = '#/system'`)
    const reboot = page.getByRole('button', { name: 'Reboot' })
    expect(await reboot.isDisabled()).toBe(true)
    // A logout waits for nobody.
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('User name').waitFor({ timeout: 10_000 })
    closing.close()
  })
})
