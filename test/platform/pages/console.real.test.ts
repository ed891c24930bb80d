import { readFile } from 'node:fs/promises'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  accessibilityProblems,
  allRead,
  hasBrowser,
  sidewaysScroll,
  type viewports,
} from '../../support/browser.ts'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { fleetPassword, fleetPages } from '../../support/planted-fleet.ts'
import { logInFleet as logIn, readAgain, usePlatformPages } from '../../support/platform-pages.ts'

describe.skipIf(!hasBrowser)('the pages of the platform in a browser', () => {
  const { start, open, openBlank, enter, platform, fleet, address, inProject } = usePlatformPages()

  describe('that change no fleet', () => {
    beforeAll(() => start())

    it('a wrong password is refused, the right one enters, and a logout ends the token', async () => {
      const { page } = await open()
      await logIn(page, 'admin', 'wrong')
      await page.getByRole('alert').getByText('E-mail address or password is wrong').waitFor()
      const request = page.waitForRequest((each) => each.url().includes('/v1/edgehosts?'))
      await logIn(page, 'admin')
      const token = await (await request).headerValue('authorization')
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByRole('button', { name: 'Log in' }).waitFor()
      expect(await page.context().cookies()).toEqual([])
      const url = '/v1/users/info'
      const reply = await platform().app.inject({ url, headers: { authorization: token ?? '' } })
      expect(reply.statusCode).toBe(401)
    })

    it.each(['desktop', 'phone'] as const)(
      'each page has no violation of accessibility or policy, no error and no sideways scrolling: %s',
      async (viewport: keyof typeof viewports) => {
        const { page, complaints } = await open({ viewport })
        await page.getByRole('button', { name: 'Log in' }).waitFor()
        expect(await accessibilityProblems(page)).toEqual([])
        await logIn(page, 'admin')
        await page.getByRole('navigation', { name: 'Pages' }).waitFor()
        for (const name of fleetPages(fleet())) {
          await page.goto(inProject(name))
          await allRead(page)
          expect([name, await accessibilityProblems(page)]).toEqual([name, []])
          expect([name, await sidewaysScroll(page)]).toEqual([name, 0])
        }
        expect(complaints()).toEqual([])
      },
    )

    it('the hosts come with problems first, counted and filtered by the platform, and hostile texts stay text', async () => {
      const { page } = await enter()
      await page.getByText('No hosts here').waitFor()
      await page.getByRole('row', { name: 'north hall' }).getByText('1 host with a problem').waitFor()
      await page.getByRole('combobox', { name: 'Project' }).selectOption({ label: 'north hall' })
      await expect.poll(() => page.url()).toBe(inProject('hosts'))
      const names = async () =>
        (await page.getByRole('rowheader').getByRole('link').allTextContents()).join(' ')
      await expect.poll(names).toBe('oven-1 press-4 welder-9')
      await page.getByText('<b>Free some</b>').waitFor()
      const saving = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Save as CSV' }).click()
      const download = await saving
      expect(download.suggestedFilename()).toBe('hosts.csv')
      const saved = await readFile(await download.path(), 'utf8')
      expect(saved).toMatch(/^\uFEFF"Host",/)
      const rows = saved.split('\r\n').map((line) => line.split(',')[0])
      expect(rows.slice(1)).toEqual(['"oven-1 hall=3"', '"press-4 hall=3 line=2"', '"welder-9"', ''])
      expect(saved).toContain('<b>Free some</b>')
      await page.getByRole('button', { name: '1 Healthy' }).click()
      await expect.poll(names).toBe('press-4')
      await page.getByRole('button', { name: '3 All' }).click()
      await page.getByLabel('Labels').fill('hall=3 line=2')
      await expect.poll(names).toBe('press-4')
      await page.getByRole('button', { name: '1 All' }).waitFor()
      await page.getByLabel('Labels').fill('hall')
      await page.getByText('Labels have the form key=value').waitFor()
    })

    it('a viewer of one project begins there, and sees what others may do, turned off', async () => {
      const { page, complaints } = await enter('viewer')
      await page.getByText('press-4').waitFor()
      expect(page.url()).toBe(inProject('hosts'))
      const connect = page.getByRole('button', { name: 'Connect a host' })
      expect(await connect.isDisabled()).toBe(true)
      expect(await connect.getAttribute('title')).toBe('Only administrators can do this.')
      await page.goto(inProject(`clusters/${fleet().cluster}`))
      const change = page.getByRole('button', { name: 'Change the profiles' })
      await change.waitFor()
      expect(await change.getAttribute('title')).toBe('Only operators and administrators can do this.')
      for (const name of ['Change the profiles', 'Apply again…', 'Delete the cluster…'])
        expect([name, await page.getByRole('button', { name }).isDisabled()]).toEqual([name, true])
      await page.goto(inProject('audit'))
      await page.getByText('Only administrators of the tenant see this.').waitFor()
      expect(complaints()).toEqual([])
    })

    it('the token is exchanged before its end; one that was ended elsewhere leaves the page below a login', async () => {
      const { page, context } = await openBlank()
      await page.clock.install()
      await page.goto(address())
      const first = page.waitForRequest((each) => each.url().includes('/v1/edgehosts?'))
      await logIn(page, 'admin')
      const before = await (await first).headerValue('authorization')
      const renewal = page.waitForResponse((reply) => reply.url().includes('/v1/auth/refresh/'))
      await page.clock.fastForward(11 * 60_000)
      const { Authorization: now } = (await (await renewal).json()) as { Authorization: string }
      const statusOf = async (authorization: string) =>
        (await platform().app.inject({ url: '/v1/users/info', headers: { authorization } })).statusCode
      expect([await statusOf(before ?? ''), await statusOf(now)]).toEqual([401, 200])
      // A second tab takes the session of the first.
      const second = await openBlank({ context })
      await second.page.goto(inProject('clusters'))
      await second.page.getByRole('link', { name: 'line-2' }).waitFor()
      await platform().app.inject({
        ...{ method: 'POST', url: '/v1/users/auth/tokens/revoke', headers: { authorization: now } },
        payload: { tokens: [now] },
      })
      const dialog = second.page.getByRole('dialog', { name: 'Your session has ended' })
      await readAgain(second.page)
      await dialog.waitFor({ timeout: 60_000 })
      await dialog.getByLabel('Password', { exact: true }).fill(fleetPassword)
      await dialog.getByRole('button', { name: 'Log in' }).click()
      await dialog.waitFor({ state: 'detached' })
      expect(second.page.url()).toBe(inProject('clusters'))
    })

    it('a link sets a password, once, and with it the user logs in', async () => {
      const admin = await enter()
      await admin.page.goto(`${address()}/#/users`)
      await admin.page.getByLabel('E-mail address').fill('new@plant.example')
      await admin.page.getByRole('button', { name: 'Create', exact: true }).click()
      await admin.page.getByText('The link for new@plant.example').waitFor()
      const link = (await admin.page.locator('.note code').textContent()) ?? ''
      await admin.context.close()
      const { page } = await open()
      await page.goto(link)
      await page.getByLabel('New password', { exact: true }).fill('another long password')
      await page.getByLabel('Repeat the new password').fill('another long password')
      await page.getByRole('button', { name: 'Set the new password' }).click()
      await page.getByText('The password is set.').waitFor()
      await page.getByRole('link', { name: 'Log in' }).click()
      await logIn(page, 'new', 'another long password')
      await page.getByText('You have no role here').waitFor()
    })
  })

  describe('that change it', () => {
    beforeEach(() => start())

    it('a long list is shown by pages of 50; without a connection what was read stays, and the page says so', async () => {
      const { token } = (await fleet().ask('POST', '/v1/edgehosts/tokens', {
        metadata: { name: 'many' },
        spec: { defaultProjectUid: fleet().project },
      })) as { token: string }
      for (let n = 0; n < 60; n += 1) {
        const { status } = await playEdgeHost(platform()).register(token, `host-${n}`)
        expect(status).toBe(200)
      }
      const { page, context } = await enter()
      await page.goto(inProject('hosts'))
      await page.getByText('1 to 50 of 63').waitFor()
      await page.getByRole('button', { name: 'Next' }).click()
      await page.getByText('51 to 63 of 63').waitFor()
      expect(await page.getByRole('rowheader').count()).toBe(13)
      expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
      await page.getByRole('button', { name: 'Previous' }).click()
      await page.getByText('1 to 50 of 63').waitFor()
      await context.setOffline(true)
      await readAgain(page)
      await page.getByText('The platform does not answer').waitFor()
      expect(await page.getByRole('rowheader').count()).toBe(50)
      await context.setOffline(false)
      await page.getByText('The platform does not answer').waitFor({ state: 'detached' })
    })

    it('a token is made and shown once, with the commands that connect a host', async () => {
      const { page } = await enter()
      await page.goto(inProject('hosts/connect'))
      await page.getByLabel('Name of the token').fill('hall-c')
      await page.getByRole('button', { name: 'Make a token' }).click()
      await page.getByText('It is shown only here.').waitFor()
      const token = (await page.locator('.note code').textContent()) ?? ''
      const { status, json } = await playEdgeHost(platform()).register(token, 'press-5')
      expect([status, json.aclmeta?.projectUid]).toEqual([200, fleet().project])
      await page.getByText(`platform connect ${address()} --token-file token --fingerprint `).waitFor()
      await page.goto(inProject('tokens'))
      await page.getByRole('row', { name: 'hall-c' }).getByText('1 of 1').waitFor()
      expect(await page.getByText(token).count()).toBe(0)
    })

    it('a host is deleted when its name is typed; one with a cluster is refused, and the page says why', async () => {
      const { page } = await enter()
      await page.goto(inProject(`hosts/${fleet().ill.uid}`))
      await page.getByRole('button', { name: 'Delete the host…' }).click()
      const dialog = page.getByRole('dialog', { name: 'Delete the host' })
      const confirm = dialog.getByRole('button', { name: 'Delete the host' })
      expect(await confirm.isDisabled()).toBe(true)
      await dialog.getByLabel('Type oven-1 to confirm').fill('oven-1')
      await confirm.click()
      await expect.poll(() => page.url()).toBe(inProject('hosts'))
      await page.getByRole('button', { name: '2 All' }).waitFor()
      expect(platform().rooms.hosts.find(fleet().ill.uid)).toBeUndefined()
      await page.goto(inProject(`hosts/${fleet().well.uid}`))
      await page.getByRole('button', { name: 'Delete the host…' }).click()
      await dialog.getByLabel('Type press-4 to confirm').fill('press-4')
      await confirm.click()
      await dialog.getByText('press-4 has the cluster line-2; delete that first').waitFor()
    })

    it('labels of a host are changed; of two hosts with one key the next one is let in', async () => {
      const { page } = await enter()
      await page.goto(inProject(`hosts/${fleet().ill.uid}`))
      const field = page.getByLabel('Labels, key=value')
      await field.fill('hall=4 "')
      await page.getByText('Labels have the form key=value').waitFor()
      await field.fill('hall=4 line=7')
      await page.getByRole('button', { name: 'Save' }).click()
      await expect
        .poll(() => platform().rooms.hosts.find(fleet().ill.uid)?.labels)
        .toEqual({ hall: '4', line: '7' })
      const copy = fleet().ill.copy()
      await platform().app.inject({ url: '/v1/users/info', headers: { authorization: fleet().ill.token } })
      expect((await fleet().ill.logIn()).status).toBe(200)
      await platform().app.inject({ url: '/v1/users/info', headers: { authorization: fleet().ill.token } })
      expect((await copy.logIn()).json.code).toBe('HostExistsTwice')
      await readAgain(page)
      await page.getByRole('button', { name: 'Let the next login in' }).click({ timeout: 60_000 })
      await expect.poll(() => platform().rooms.hosts.find(fleet().ill.uid)?.isNextAccepted).toBe(true)
    })

    it('a cluster is checked with all its problems, created, changed, applied again and deleted', async () => {
      const { page } = await enter()
      await page.goto(inProject('clusters/new'))
      await page.getByLabel('Name', { exact: true }).fill('Line 3')
      await page.getByRole('combobox', { name: 'Host' }).selectOption({ label: 'welder-9' })
      await page.getByLabel('plant 1.0.0').check()
      await page.getByLabel('USER').fill('anna')
      await page.getByRole('button', { name: 'Check' }).click()
      await page.getByText('hinders it').waitFor()
      expect(await page.getByRole('button', { name: 'Create', exact: true }).isDisabled()).toBe(true)
      await page.getByLabel('Name', { exact: true }).fill('line-3')
      await page.getByRole('button', { name: 'Check' }).click()
      await page.getByRole('button', { name: 'Create', exact: true }).click()
      await page.getByRole('heading', { level: 1, name: 'line-3' }).waitFor()
      await page.getByRole('button', { name: 'Change the profiles' }).click()
      await page.getByRole('button', { name: 'Remove' }).click()
      await page.getByLabel('Add a profile').selectOption({ label: 'plant 1.1.0' })
      await page.getByRole('button', { name: 'Change the profiles' }).click()
      await page.getByRole('listitem').getByText('plant 1.1.0').waitFor()
      await page.getByRole('button', { name: 'Apply again…' }).click()
      const applied = page.waitForResponse((reply) => reply.url().includes('/apply'))
      await page.getByRole('dialog').getByRole('button', { name: 'Apply again' }).click()
      expect((await applied).status()).toBe(204)
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Delete the cluster…' }).click()
      await page.getByLabel('Type line-3 to confirm').fill('line-3')
      await page.getByRole('dialog').getByRole('button', { name: 'Delete the cluster' }).click()
      await page.getByText('The deletion waits for the host').waitFor()
    })
  })
})
