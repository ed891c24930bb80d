import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  accessibilityProblems,
  buildPages,
  hasBrowser,
  launchBrowser,
  logInWith,
  openPage,
  sidewaysScroll,
  type viewports,
} from '../../support/browser.ts'
import { fleetPassword, plantFleet, type PlantedFleet } from '../../support/planted-fleet.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

/** Pages in the project, and pages of the tenant. */
const pageNames = ['hosts', 'more']

describe.skipIf(!hasBrowser)('the pages of the platform in a browser', () => {
  let browser: Browser
  let pages: Awaited<ReturnType<typeof buildPages>>
  let platform: Awaited<ReturnType<typeof createTestPlatform>>
  let fleet: PlantedFleet
  let address: string

  beforeAll(async () => {
    pages = await buildPages('platform')
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await pages.remove()
  })
  beforeEach(async () => {
    platform = await createTestPlatform({ pagesFolder: pages.folder })
    fleet = await plantFleet(platform)
    await platform.start()
    address = `https://127.0.0.1:${Number(platform.lines.find(({ msg }) => msg === 'listening')?.port)}`
  })
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close()
    await platform.close()
  })

  const open = async (options: Parameters<typeof openPage>[1] = {}) => {
    const opened = await openPage(browser, options)
    await opened.page.goto(address)
    return opened
  }
  const logIn = (page: Page, name: string, password = fleetPassword) =>
    logInWith(page, `${name}@plant.example`, password, 'E-mail address')
  const enter = async (name = 'admin', options: Parameters<typeof openPage>[1] = {}) => {
    const opened = await open(options)
    await logIn(opened.page, name)
    await opened.page.getByRole('navigation', { name: 'Pages' }).waitFor()
    return opened
  }
  const inProject = (path: string) => `${address}/#/projects/${fleet.project}/${path}`

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
    const reply = await platform.app.inject({ url, headers: { authorization: token ?? '' } })
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
      for (const name of pageNames) {
        await page.goto(inProject(name))
        await page.waitForLoadState('networkidle')
        expect([name, await accessibilityProblems(page)]).toEqual([name, []])
        expect([name, await sidewaysScroll(page)]).toEqual([name, 0])
      }
      expect(complaints()).toEqual([])
    },
  )

  it('the hosts come with problems first, counted and filtered by the platform, and hostile texts stay text', async () => {
    const { page } = await enter()
    await page.getByText('No hosts here').waitFor()
    await page.getByLabel('Project').selectOption({ label: 'north hall' })
    await expect.poll(() => page.url()).toBe(inProject('hosts'))
    const names = async () =>
      (await page.getByRole('rowheader').getByRole('link').allTextContents()).join(' ')
    await expect.poll(names).toBe('oven-1 press-4 welder-9')
    await page.getByText('<b>Free some</b>').waitFor()
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
    expect(complaints()).toEqual([])
  })

  it('a link sets a password, once, and with it the user logs in', async () => {
    const { uid } = (await fleet.ask('POST', '/v1/users', { spec: { emailId: 'new@plant.example' } })) as {
      uid: string
    }
    const { status } = (await fleet.ask('GET', `/v1/users/${uid}`)) as { status: { activationLink: string } }
    const token = new URL(status.activationLink).pathname.split('/').at(-2)
    const { page } = await open()
    await page.goto(`${address}/#/password/${token}`)
    await page.getByLabel('New password', { exact: true }).fill('another long password')
    await page.getByLabel('Repeat the new password').fill('another long password')
    await page.getByRole('button', { name: 'Set the new password' }).click()
    await page.getByText('The password is set.').waitFor()
    await page.getByRole('link', { name: 'Log in' }).click()
    await logIn(page, 'new', 'another long password')
    await page.getByText('this user has no role for the tenant').first().waitFor()
  })
})
