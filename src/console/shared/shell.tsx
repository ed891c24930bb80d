import { computed, signal, type ReadonlySignal } from '@preact/signals'
import { render, type ComponentChildren, type ComponentType } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { time } from './format.ts'
import { Icon, type IconName } from './icon.tsx'
import { LanguageChoice, LoginForm } from './login.tsx'
import { Dialog } from './dialog.tsx'
import { PageHeader } from './parts.tsx'
import { isReachable, lastContact } from './request.ts'
import {
  endsInSeconds,
  goOn,
  hasEnded,
  logOut,
  phase,
  resume,
  useProtocol,
  user,
  watchUse,
  type SessionProtocol,
} from './session.ts'
import { locale } from './text.ts'
import { sharedText } from './texts.ts'

export interface Page {
  /** Behind `#`, for example `/cluster`. */
  readonly path: string
  readonly icon: IconName
  readonly title: () => string
  readonly view: ComponentType
  /** Whether a phone shows it in its bar; the others are below "More". */
  readonly isMain: boolean
}

interface ConsoleOptions {
  readonly session: SessionProtocol
  readonly pages: readonly [Page, ...Page[]]
  /** Name of the host; empty before it is known. */
  readonly name: ReadonlySignal<string>
  readonly login: () => ComponentChildren
  /** Shown on every page, for work that goes on. */
  readonly floating?: (path: string) => ComponentChildren
  /** Shown above every page. */
  readonly above?: (path: string) => ComponentChildren
  /** Pages that need no session, by the first part of their place. */
  readonly open?: Readonly<Record<string, () => ComponentChildren>>
}

const hashPath = () => location.hash.slice(1) || '/'
const place = signal(hashPath())
addEventListener('hashchange', () => {
  place.value = hashPath()
})

/** A place that someone has typed may have a `%` that begins no character. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const parts = computed(() => place.value.split('/').slice(1).map(decoded))

/** The project that the place begins with, `#/projects/UID/…`; undefined for one without. A host has no projects. */
export const placeProject = computed(() => (parts.value[0] === 'projects' ? parts.value[1] : undefined))

const ofPage = computed(() => (placeProject.value === undefined ? parts.value : parts.value.slice(2)))

/** The parts of the place behind the path of the page: of `#/network/changes/UID` these are `changes` and `UID`. */
export const placeParts = computed(() => ofPage.value.slice(1))

/** The address of a page, with its leading slash, in a project; by default in that of the place. */
export const hrefOf = (path: string, project = placeProject.value): string =>
  project === undefined || project === '' ? `#${path}` : `#/projects/${encodeURIComponent(project)}${path}`

const morePath = '/more'

/** Draws the pages of a program into the document. */
export function startConsole(options: ConsoleOptions): void {
  const more: Page = {
    path: morePath,
    icon: 'more',
    title: () => sharedText.value.more,
    view: () => <More pages={options.pages.filter(({ isMain }) => !isMain)} />,
    isMain: false,
  }
  const all: ConsoleOptions = { ...options, pages: [...options.pages, more] }
  useProtocol(options.session)
  watchUse()
  watchVersion()
  void resume()
  const root = document.getElementById('app')
  if (!root) throw new Error('the document has no place for the pages')
  root.replaceChildren()
  render(<Console {...all} />, root)
}

function Console(options: ConsoleOptions) {
  const t = sharedText.value
  const name = ofPage.value[0] ?? ''
  const open = options.open && Object.hasOwn(options.open, name) ? options.open[name] : undefined
  if (open) return <>{open()}</>
  if (phase.value === 'starting')
    return (
      <p class="boot" role="status">
        {isReachable.value ? t.loading : t.unreachable}…
      </p>
    )
  // What one user has read and typed is not shown to another one.
  return user.value ? <Shell key={user.value.userName} {...options} /> : <>{options.login()}</>
}

function Shell({ pages, name, floating, above }: ConsoleOptions) {
  const t = sharedText.value
  const first = `/${ofPage.value[0] ?? ''}`
  const page = pages.find(({ path }) => path === first) ?? pages[0]
  const main = useRef<HTMLElement>(null)
  const wasDrawn = useRef(false)
  const title = page.title()
  useEffect(() => {
    document.title = `${title} – ${name.value || location.hostname}`
  }, [title, name.value])
  useEffect(() => {
    // A reader hears the new page by its heading; on the first one the focus stays where it is.
    if (wasDrawn.current) {
      const heading = main.current?.querySelector<HTMLElement>('h1')
      heading?.focus()
      scrollTo(0, 0)
      // So does a heading that replaces this one when the page has been read.
      main.current?.setAttribute('data-opened', '')
    }
    wasDrawn.current = true
  }, [page.path, placeParts.value.join('/')])
  const View = page.view
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault()
          main.current?.focus()
        }}
      >
        {t.skip}
      </a>
      <div class="shell">
        <nav class="side" aria-label={t.menu}>
          <div class="brand">
            <img src="/console/icon.svg" width="28" height="28" alt="" />
            <span>{name.value || location.hostname}</span>
          </div>
          <ul>
            {pages.map(({ path, icon, title: titleOf, isMain }) => (
              <li key={path} class={path === morePath ? 'phone' : isMain ? '' : 'wide-only'}>
                <a href={hrefOf(path)} aria-current={path === page.path ? 'page' : undefined}>
                  <Icon name={icon} />
                  <span>{titleOf()}</span>
                </a>
              </li>
            ))}
          </ul>
          <div class="me">
            <LanguageChoice />
            <div class="row">
              <span class="who">
                <strong>{user.value?.userName}</strong>
                <span class="dim">{t.roles[user.value?.role ?? '']}</span>
              </span>
              <button type="button" class="plain small" onClick={() => void logOut()}>
                {t.logOut}
              </button>
            </div>
          </div>
        </nav>
        <main id="main" tabIndex={-1} ref={main}>
          <Banners />
          <div class="page-body">
            {above?.(page.path)}
            <View key={`${placeProject.value ?? ''} ${page.path} ${locale.value}`} />
          </div>
          {floating?.(page.path)}
        </main>
      </div>
      {hasEnded.value && (
        <Dialog title={t.sessionEnded}>
          <p>{t.sessionEndedLong}</p>
          <LoginForm name={user.value?.userName ?? ''} />
        </Dialog>
      )}
    </>
  )
}

/** The host has been updated, and this page is of the version before. */
const isOutdated = signal(false)

/** The document is asked for when the host answers again: its ETag says whether it is still this one. */
function watchVersion(): void {
  const tagOfPage = async () => {
    const reply = await fetch('/', { method: 'HEAD', credentials: 'omit', cache: 'no-store' })
    return reply.headers.get('etag')
  }
  const loaded = tagOfPage().catch(() => null)
  let was = true
  async function compare() {
    const [before, now] = await Promise.all([loaded, tagOfPage()])
    if (before !== null && now !== null && before !== now) isOutdated.value = true
  }
  isReachable.subscribe((is) => {
    if (is && !was) void compare().catch(() => undefined)
    was = is
  })
}

function Banners() {
  const t = sharedText.value
  const ends = endsInSeconds.value
  return (
    <div role="status" class="banner-place">
      {isOutdated.value && (
        <div class="banner news">
          <Icon name="info" />
          <div class="row">
            {t.newVersion}
            <button type="button" class="plain small" onClick={() => location.reload()}>
              {t.reload}
            </button>
          </div>
        </div>
      )}
      {ends !== undefined && !hasEnded.value && (
        <div class="banner">
          <Icon name="warning" />
          <div class="row">
            {t.sessionEnds(ends)}
            <button type="button" class="plain small" onClick={goOn}>
              {t.stay}
            </button>
          </div>
        </div>
      )}
      {!isReachable.value && (
        <div class="banner">
          <Icon name="off" />
          <div>
            <strong>{t.unreachable}</strong> {t.unreachableLong(time(lastContact.value))}
          </div>
        </div>
      )}
    </div>
  )
}

function More({ pages }: { pages: readonly Page[] }) {
  const t = sharedText.value
  return (
    <>
      <PageHeader title={t.more} />
      <nav class="list" aria-label={t.more}>
        {pages.map(({ path, icon, title }) => (
          <a key={path} href={hrefOf(path)}>
            <Icon name={icon} />
            {title()}
          </a>
        ))}
      </nav>
      <div class="row pad">
        <LanguageChoice />
        <button type="button" class="plain" onClick={() => void logOut()}>
          {t.logOut}
        </button>
      </div>
    </>
  )
}
