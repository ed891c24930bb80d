import type { ComponentChildren, ComponentType } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { day, plain, time, wordsOf } from './format.ts'
import { Icon, type IconName } from './icon.tsx'
import type { ListReading, PagedReading, Reading } from './read.ts'
import { hostNow, isReachable, RequestError } from './request.ts'
import { hasRole } from './session.ts'
import { sharedText } from './texts.ts'

/** How something stands; each has an icon and a word beside its colour. */
export type Mood = 'good' | 'warning' | 'bad' | 'info'

export const Badge = ({ mood, children }: { mood: Mood; children: ComponentChildren }) => (
  <span class={`badge ${mood}`}>
    <Icon name={mood} />
    {children}
  </span>
)

export const Note = ({ mood, children }: { mood: Mood; children: ComponentChildren }) => (
  <div class={`note ${mood}`} role={mood === 'bad' ? 'alert' : undefined}>
    <Icon name={mood} />
    <div>{children}</div>
  </div>
)

interface CardProps {
  readonly title: string
  readonly icon?: IconName
  readonly aside?: ComponentChildren
  readonly width?: 'half' | 'third'
  readonly children: ComponentChildren
}

export const Card = ({ title, icon, aside, width, children }: CardProps) => (
  <section class={`card ${width ?? ''}`}>
    <header>
      <h2>
        {icon && <Icon name={icon} />}
        {title}
      </h2>
      {aside}
    </header>
    {children}
  </section>
)

interface PageHeaderProps {
  readonly title: string
  readonly children?: ComponentChildren
  readonly aside?: ComponentChildren
}

export function PageHeader({ title, children, aside }: PageHeaderProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  // Before anything is painted: a screen reader hears of no other focus.
  useLayoutEffect(() => {
    // It takes the place of a heading that had the focus, for example when the page has been read.
    if (document.activeElement === document.body && heading.current?.closest('[data-opened]'))
      heading.current.focus({ preventScroll: true })
  }, [])
  return (
    <header class="page">
      <div>
        <h1 tabIndex={-1} ref={heading}>
          {title}
        </h1>
        {children !== undefined && <p class="dim">{children}</p>}
      </div>
      {aside}
    </header>
  )
}

interface TabPagesProps {
  readonly label: string
  /** Of all tabs, for example `#/cluster`. */
  readonly base: string
  /** Path of the shown one; the first one is shown for another path. */
  readonly current: string
  readonly tabs: readonly [Tab, ...Tab[]]
}

interface Tab {
  readonly path: string
  readonly title: string
  readonly view: ComponentType
}

/** The parts of one page: links to all of them, and the shown one. */
export function TabPages({ label, base, current, tabs }: TabPagesProps) {
  const shown = tabs.find(({ path }) => path === current) ?? tabs[0]
  const View = shown.view
  const tabBar = useRef<HTMLElement>(null)
  // On a phone it may be beside what is seen.
  useEffect(
    () =>
      tabBar.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    [shown.path],
  )
  return (
    <>
      <nav class="tabs" aria-label={label} ref={tabBar}>
        {tabs.map(({ path, title }) => (
          <a
            key={path}
            href={path === '' ? base : `${base}/${path}`}
            aria-current={path === shown.path ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <View />
    </>
  )
}

type Fact = readonly [name: string, value: ComponentChildren]

/** Names and values; what has no value is left out. */
export const Facts = ({ facts }: { facts: readonly (Fact | false | undefined)[] }) => (
  <dl class="facts">
    {facts.map(
      (fact) =>
        fact &&
        fact[1] !== undefined &&
        fact[1] !== '' && (
          <div key={fact[0]}>
            <dt>{fact[0]}</dt>
            <dd>{fact[1]}</dd>
          </div>
        ),
    )}
  </dl>
)

interface ListedProblem {
  readonly severity?: 'error' | 'warning'
  readonly message: string
  /** Where it is: in a file, or in a request. */
  readonly place?: string
  readonly path?: string
}

/** All problems for which a request was refused; none where there is one, which the message of the refusal has. */
function problemsOf({ details }: RequestError): readonly ListedProblem[] {
  const problems = Array.isArray(details.problems) ? (details.problems as readonly ListedProblem[]) : []
  const errors = problems.filter(({ severity }) => severity !== 'warning')
  return errors.length > 1 ? errors : []
}

/** A failed request: what it is, or all that is wrong with what was sent, its reference in the journal, and the next try. */
export function Problem({
  error,
  title,
  again,
}: {
  error: RequestError
  title?: string
  again?: () => void
}) {
  const t = sharedText.value
  const problems = problemsOf(error)
  return (
    <Note mood="bad">
      <strong>{title ?? t.failed}</strong>
      {problems.length === 0 ? (
        <p>{error.status === 0 ? `${t.unreachable}.` : plain(error.message)}</p>
      ) : (
        <ul class="plain-list">
          {problems.map(({ message, place, path = '' }, index) => (
            <li key={index}>
              <code>{plain(place ?? path)}</code> {plain(message)}
            </li>
          ))}
        </ul>
      )}
      {error.ref !== undefined && (
        <p class="dim">
          {t.reference} <code>{error.ref}</code>
        </p>
      )}
      {again && (
        <button type="button" class="plain" onClick={again}>
          {t.again}
        </button>
      )}
    </Note>
  )
}

export const Skeleton = ({ lines }: { lines: number }) => (
  <div class="skeleton" role="status">
    <span class="hidden">{sharedText.value.loading}</span>
    {Array.from({ length: lines }, (_line, index) => (
      <i key={index} />
    ))}
  </div>
)

interface ShownProps<Body> {
  readonly reading: Reading<Body>
  /** Of the outline while it is read. */
  readonly lines?: number
  readonly children: (body: Body) => ComponentChildren
}

/** What was read, or why there is nothing. After a failed later try what is shown stays; the banner says that it is old. */
export function Shown<Body>({ reading: { body, error, again }, lines = 3, children }: ShownProps<Body>) {
  if (body !== undefined) return <>{children(body)}</>
  return error && error.status !== 0 ? <Problem error={error} again={again} /> : <Skeleton lines={lines} />
}

export const Empty = ({
  icon,
  title,
  children,
  action,
}: {
  icon: IconName
  title: string
  children?: ComponentChildren
  action?: ComponentChildren
}) => (
  <div class="empty">
    <Icon name={icon} />
    <h2>{title}</h2>
    {children !== undefined && <p>{children}</p>}
    {action}
  </div>
)

/** A text to be taken elsewhere, and the button that copies it. */
function Copied({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false)
  const t = sharedText.value
  async function copy() {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <>
      <code>{text}</code>
      <button type="button" class="plain small" onClick={() => void copy()}>
        {isCopied ? t.copied : t.copy}
      </button>
    </>
  )
}

/** The command that does the same; or one to be run, with what it is for. */
export const Command = ({ command, title }: { command: string; title?: string }) => (
  <div class="command">
    <Icon name="terminal" />
    <span class={title === undefined ? 'dim' : undefined}>{title ?? sharedText.value.sameCommand}</span>
    <Copied text={command} />
  </div>
)

/** Runs a change once at a time, and keeps its refusal. */
export function useAction(work: () => Promise<unknown>, onDone: () => void = () => undefined) {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<RequestError>()
  async function run() {
    if (isBusy) return
    setBusy(true)
    setError(undefined)
    try {
      await work()
      onDone()
    } catch (failure) {
      if (!(failure instanceof RequestError)) throw failure
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return { run, isBusy, error }
}

interface ChangeFormProps {
  readonly action: ReturnType<typeof useAction>
  /** Text of the button; without it there is none, as while nothing is changed. */
  readonly submit: string | undefined
  readonly isOff?: boolean
  readonly kind?: 'primary' | 'plain'
  readonly children: ComponentChildren
}

/** Fields, the refusal of what was sent, and the button that sends it. */
export const ChangeForm = ({
  action,
  submit,
  isOff = false,
  kind = 'primary',
  children,
}: ChangeFormProps) => (
  <form
    class="pad form"
    onSubmit={(event) => {
      event.preventDefault()
      void action.run()
    }}
  >
    {children}
    {action.error && <Problem error={action.error} title={sharedText.value.notDone} />}
    {submit !== undefined && (
      <div class="buttons">
        <button type="submit" class={kind} disabled={action.isBusy || isOff}>
          {submit}
        </button>
      </div>
    )}
  </form>
)

/** Why the user may not do what needs this role; undefined where it may. */
const refusalFor = (needed: 'operator' | 'admin'): string | undefined =>
  hasRole(needed) ? undefined : sharedText.value[needed === 'admin' ? 'adminOnly' : 'operatorOnly']

interface TickProps {
  readonly isOn: boolean
  readonly onChange: (isOn: boolean) => void
  readonly children: ComponentChildren
}

/** A box to tick, with its words. */
export const Tick = ({ isOn, onChange, children }: TickProps) => (
  <label class="check">
    <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
    {children}
  </label>
)

/** What stands in the place of a page, or of a part of one, that only administrators have. */
export const OnlyAdministrators = ({ children = sharedText.value.adminOnly }: { children?: string }) => (
  <Note mood="info">
    <p>{children}</p>
  </Note>
)

/** A button for administrators, or for operators too; others see it off, and why. */
export const AdminButton = ({
  kind = 'plain',
  needs = 'admin',
  onClick,
  isOff = false,
  children,
}: {
  kind?: 'plain' | 'primary' | 'danger outline' | 'plain small'
  needs?: 'operator' | 'admin'
  onClick: () => void
  isOff?: boolean
  children: ComponentChildren
}) => {
  const refusal = refusalFor(needs)
  return (
    <button
      type="button"
      class={kind}
      disabled={refusal !== undefined || isOff || !isReachable.value}
      title={refusal}
      onClick={onClick}
    >
      {children}
    </button>
  )
}

/** Draws again each second, for what counts. @returns the time of the host */
export function useSeconds(isOn: boolean): number {
  const [now, setNow] = useState(hostNow())
  useEffect(() => {
    if (!isOn) return undefined
    const timer = setInterval(() => setNow(hostNow()), 1_000)
    return () => clearInterval(timer)
  }, [isOn])
  return now
}

/** A fingerprint, broken after each eight bytes, as people compare it. */
export const Fingerprint = ({ text }: { text: string }) => (
  <code class="print">
    {(text.match(/.{1,24}/g) ?? []).map((part) => (
      <span key={part}>
        {part}
        <wbr />
      </span>
    ))}
  </code>
)

/** The button below a list that has more. */
export function More({ list: { more, left } }: { list: ListReading<unknown> }) {
  const { run, isBusy, error } = useAction(async () => more?.())
  if (!more) return null
  return (
    <div class="pad">
      <button type="button" class="plain" disabled={isBusy} onClick={() => void run()}>
        {sharedText.value.showMore(left)}
      </button>
      {error && <Problem error={error} />}
    </div>
  )
}

/** The shown rows of a long list, and the ways to the pages before and after. */
function Pager({ list: { first, last, count, previous, next } }: { list: PagedReading<unknown> }) {
  const t = sharedText.value
  return (
    <div class="row pad">
      <span class="dim" role="status">
        {t.rows(first, last, count)}
      </span>
      {(previous ?? next) && (
        <div class="buttons">
          <button type="button" class="plain" disabled={!previous} onClick={previous}>
            {t.previous}
          </button>
          <button type="button" class="plain" disabled={!next} onClick={next}>
            {t.next}
          </button>
        </div>
      )}
    </div>
  )
}

interface PagedListProps<Item> {
  readonly list: PagedReading<Item>
  readonly lines?: number
  /** In place of a list without items. */
  readonly none: ComponentChildren
  readonly children: (items: readonly Item[]) => ComponentChildren
}

/** The rows of a long list with the ways to its other pages, or what is there in their place. */
export const PagedList = <Item,>({ list, lines = 3, none, children }: PagedListProps<Item>) => (
  <Shown reading={list} lines={lines}>
    {() =>
      list.count === 0 ? (
        none
      ) : (
        <>
          {children(list.items)}
          <Pager list={list} />
        </>
      )
    }
  </Shown>
)

interface ShownEvent {
  readonly metadata: { readonly creationTimestamp: string }
  readonly severity: 'Normal' | 'Warning' | 'Error'
  readonly reason: string
  readonly message: string
}

/** One event of a list. */
export function EventLine({ event: { metadata, severity, reason, message } }: { event: ShownEvent }) {
  const mood = severity === 'Error' ? 'bad' : severity === 'Warning' ? 'warning' : 'info'
  return (
    <li class={mood}>
      <time dateTime={metadata.creationTimestamp} title={day(metadata.creationTimestamp)}>
        {time(metadata.creationTimestamp)}
      </time>
      {severity === 'Normal' ? <i class="dot" /> : <Icon name={mood} />}
      {severity !== 'Normal' && <span class="hidden">{severity}</span>}
      <strong>{plain(wordsOf(reason))}</strong>
      <span>{plain(message)}</span>
    </li>
  )
}

interface ChoiceProps<Value extends string> {
  readonly label: string
  readonly value: Value
  /** Values with their titles, in the order in which they are shown. */
  readonly options: readonly (readonly [value: Value, title: string])[]
  readonly onChange: (value: Value) => void
}

/** A choice of one of a few, with its label above. */
export const Choice = <Value extends string>({ label, value, options, onChange }: ChoiceProps<Value>) => (
  <label class="field">
    <span>{label}</span>
    <select value={value} onChange={(event) => onChange(event.currentTarget.value as Value)}>
      {options.map(([each, title]) => (
        <option key={each} value={each}>
          {title}
        </option>
      ))}
    </select>
  </label>
)

interface EntryProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly type?: 'text' | 'email' | 'url' | 'date' | 'datetime-local' | 'number' | 'password'
  readonly isRequired?: boolean
  readonly isReadOnly?: boolean
  readonly placeholder?: string
  readonly maxLength?: number
  /** Below the field. */
  readonly hint?: string
}

/** A field for a text, with its label above. */
export const Entry = (props: EntryProps) => {
  const {
    label,
    value,
    onChange,
    type = 'text',
    isRequired,
    isReadOnly,
    placeholder,
    maxLength,
    hint,
  } = props
  return (
    <label class="field">
      <span>{label}</span>
      <input
        // The types of preact have one form for each kind of field.
        {...({ type } as { type: 'text' })}
        value={value}
        required={isRequired}
        readOnly={isReadOnly}
        placeholder={placeholder}
        maxLength={maxLength}
        autocomplete={type === 'password' ? 'new-password' : 'off'}
        autocapitalize="off"
        spellcheck={false}
        min={type === 'number' ? 0 : undefined}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {hint !== undefined && <span class="hint">{hint}</span>}
    </label>
  )
}

interface LinesProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly isReadOnly?: boolean
  readonly rows?: number
  /** Below the field. */
  readonly hint?: string
}

/** A field for several lines, with its label above. */
export const Lines = ({ label, value, onChange, isReadOnly, rows = 3, hint }: LinesProps) => (
  <label class="field">
    <span>{label}</span>
    <textarea
      rows={rows}
      value={value}
      readOnly={isReadOnly}
      autocapitalize="off"
      spellcheck={false}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
    {hint !== undefined && <span class="hint">{hint}</span>}
  </label>
)

/** The lines of such a field that say something. */
export const linesOf = (written: string): readonly string[] =>
  written
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

/** A text that is shown once: a token, a link. */
export function Secret({ text, children }: { text: string; children: ComponentChildren }) {
  return (
    <Note mood="good">
      {children}
      <Copied text={text} />
    </Note>
  )
}

/** Has the browser save a file, under this name. */
export function saveFile(name: string, content: Blob): void {
  const href = URL.createObjectURL(content)
  Object.assign(document.createElement('a'), { href, download: name }).click()
  URL.revokeObjectURL(href)
}
