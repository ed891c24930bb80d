import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import { bundleConsole, type ConsoleProgram } from '../../build/console.ts'

/** Debian's; `make test-real` installs it. */
const program = '/usr/bin/chromium'

export const hasBrowser = existsSync(program)

export const viewports = {
  desktop: { width: 1280, height: 900 },
  tablet: { width: 820, height: 1180 },
  phone: { width: 390, height: 844 },
} as const

/** The pages of a program, built as for the package. */
export async function buildPages(
  program: ConsoleProgram = 'host',
): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-pages-'))
  await bundleConsole(program, folder)
  return { folder, remove: () => rm(folder, { recursive: true }) }
}

const args = ['--no-sandbox', '--disable-gpu']

export const launchBrowser = (): Promise<Browser> => chromium.launch({ executablePath: program, args })

/**
 * A browser beside a booted host.
 * @param holder a process in whose network namespace it is
 * @param folder where its starter is written
 */
export async function launchBrowserBeside(holder: number, folder: string): Promise<Browser> {
  const starter = join(folder, 'browser')
  await writeFile(starter, `#!/bin/sh\nexec nsenter -t ${holder} -n ${program} "$@"\n`, { mode: 0o755 })
  return chromium.launch({ executablePath: starter, args })
}

/** A page that notes what a browser complains about. */
export interface WatchedPage {
  readonly page: Page
  readonly context: BrowserContext
  /** Errors of the console, of scripts, and violations of the content security policy, since the last call. */
  complaints(): string[]
}

interface WatchOptions {
  readonly viewport?: keyof typeof viewports
  readonly locale?: string
  readonly scheme?: 'light' | 'dark'
  /** For another tab of the same browser. */
  readonly context?: BrowserContext
}

export async function openPage(browser: Browser, options: WatchOptions = {}): Promise<WatchedPage> {
  const { viewport = 'desktop', locale = 'en-GB', scheme = 'light' } = options
  const context =
    options.context ??
    (await browser.newContext({
      ignoreHTTPSErrors: true,
      viewport: viewports[viewport],
      locale,
      colorScheme: scheme,
      timezoneId: 'UTC',
    }))
  const page = await context.newPage()
  const noted: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') noted.push(message.text())
  })
  page.on('pageerror', ({ message }) => noted.push(message))
  // The policy forbids the page this script; the browser runs it before the page.
  const listener = "(event) => console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI)"
  await page.addInitScript({ content: `addEventListener('securitypolicyviolation', ${listener})` })
  return { page, context, complaints: () => noted.splice(0) }
}

/** Logs in on the page that a browser gets at `/`. @param label of the field for the name */
export async function logInWith(
  page: Page,
  name: string,
  password: string,
  label = 'User name',
): Promise<void> {
  await page.getByLabel(label).first().fill(name)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
}

/** Logs in, in any language, and waits for the pages. */
export async function enterWith(page: Page, name: string, password: string): Promise<void> {
  await page.locator('input[autocomplete="username"]').fill(name)
  await page.locator('input[autocomplete="current-password"]').fill(password)
  await page.keyboard.press('Enter')
  await page.locator('nav.side').waitFor()
}

/** The heading of a page. */
export const heading = (page: Page) => page.getByRole('heading', { level: 1 })

/** Waits until what a page reads has arrived. */
export async function allRead(page: Page): Promise<void> {
  await heading(page).waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
}

// The package itself, of which its driver would send the text anew for each examination, and report all that is well too: four times as long.
const axePath = createRequire(import.meta.resolve('@axe-core/playwright')).resolve('axe-core/axe.min.js')
let axeText: string | undefined

const axeOptions = {
  runOnly: {
    type: 'tag',
    values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  },
  resultTypes: ['violations'],
}

/** Violations of WCAG 2.2 AA and of good practice, a line each. The pages have no frames. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in window"))) {
    axeText ??= await readFile(axePath, 'utf8')
    await page.evaluate(axeText)
  }
  const violations = await page.evaluate<readonly { id: string; nodes: readonly { target: string[] }[] }[]>(
    `axe.run(document, ${JSON.stringify(axeOptions)}).then(({ violations }) => violations)`,
  )
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
}

/** Pixels that the page is wider than what is seen of it; on a phone, where tables are lists, also those that a table is wider. */
export const sidewaysScroll = (page: Page): Promise<number> =>
  page.evaluate<number>(
    `Math.max(...[document.documentElement, ...(innerWidth <= 720 ? document.querySelectorAll('.scroll') : [])]
      .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))`,
  )
