// What the host has found for a cluster that is to be made or changed: problems, differences, missing content and steps.
import type { ClusterDiff, Effect, PackChange } from '../../../cluster/desired/schemas.ts'
import type { ClusterDryRun, ContentNeed } from '../../../cluster/schemas.ts'
import { bytes, plain, span } from '../../shared/format.ts'
import { Badge, Note } from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { text } from '../host.tsx'

type Problem = ClusterDryRun['problems'][number]

/** Errors before warnings, as the host orders them. */
export function Problems({ problems, good }: { problems: readonly Problem[]; good: string }) {
  const t = text.value.plan
  const errors = problems.filter(({ severity }) => severity === 'error').length
  if (problems.length === 0)
    return (
      <Note mood="good">
        <p role="status">{good}</p>
      </Note>
    )
  return (
    <Note mood={errors > 0 ? 'bad' : 'warning'}>
      <strong>{errors > 0 ? t.errors(errors) : good}</strong>
      <ul class="problems">
        {problems.map(({ code, severity, message, pack }) => (
          <li key={`${code} ${message}`}>
            <Badge mood={severity === 'error' ? 'bad' : 'warning'}>{code}</Badge>
            {pack !== undefined && <span class="tag">{plain(pack)}</span>}
            <p>{plain(message)}</p>
          </li>
        ))}
      </ul>
    </Note>
  )
}

/** Images, charts and programs that the host has not. */
export function Missing({ needs }: { needs: readonly ContentNeed[] }) {
  const t = text.value.plan
  const missing = needs.filter(({ isThere, isRequired }) => isThere === false && isRequired)
  if (needs.length === 0) return null
  if (missing.length === 0) return <p class="dim">{t.allThere(needs.length)}</p>
  return (
    <details>
      <summary>{t.missing(missing.length)}</summary>
      <Table
        title={t.missing(missing.length)}
        items={missing}
        keyOf={({ kind, name, version = '' }) => `${kind} ${name} ${version}`}
        columns={[
          { title: t.content, cell: ({ name, version }) => plain([name, version].filter(Boolean).join(' ')) },
          { title: t.kind, cell: ({ kind }) => t.kinds[kind] },
          { title: t.origin, cell: ({ origin }) => plain(origin) },
          {
            title: t.size,
            isNumber: true,
            cell: ({ sizeBytes }) => (sizeBytes === undefined ? '–' : bytes(sizeBytes)),
          },
        ]}
      />
      <p>
        <a href="#/content">{t.toContent}</a>
      </p>
    </details>
  )
}

/** The steps in their order, each with the time after which it has failed. */
export function Steps({ plan }: { plan: ClusterDryRun['plan'] }) {
  const t = text.value.plan
  if (plan.length === 0) return null
  return (
    <details>
      <summary>{t.steps(plan.length)}</summary>
      <ol class="steps">
        {plan.map(({ key, title, timeoutSeconds }) => (
          <li key={key}>
            {plain(title)} <span class="dim">{t.atMost(span(timeoutSeconds))}</span>
          </li>
        ))}
      </ol>
    </details>
  )
}

/** What becomes different, and its effects, which come first. */
export function Diff({ diff }: { diff: ClusterDiff }) {
  const t = text.value.plan
  const { definition, kubernetes, node, packs, variables, settings, effects } = diff
  if (diff.isEmpty) return <p class="dim">{t.nothing}</p>
  return (
    <div class="stack">
      {effects.length > 0 && (
        <Note mood="info">
          <strong>{t.effects}</strong>
          <ul>
            {effects.map((effect) => (
              <li key={`${effect.target} ${effect.pack ?? ''} ${effect.message}`}>{effectText(effect)}</li>
            ))}
          </ul>
        </Note>
      )}
      <dl class="facts">
        {definition && <Change name={t.definition} from={definition.from} to={definition.to} />}
        {kubernetes && <Change name={t.kubernetes} from={kubernetes.from} to={kubernetes.to} />}
        {node && (
          <div>
            <dt>{t.node}</dt>
            <dd>{node.fields.map((field) => t.nodeFields[field]).join(', ')}</dd>
          </div>
        )}
        {variables.map(({ profileUid, name, from, to, isSensitive }) => (
          <Change
            key={`${profileUid} ${name}`}
            name={name}
            from={isSensitive ? t.hidden : from}
            to={isSensitive ? t.hidden : to}
          />
        ))}
        {(['ntpServers', 'sshKeys'] as const).map((name) => {
          const change = settings[name]
          return (
            change && (
              <Change key={name} name={t[name]} from={change.from.join('\n')} to={change.to.join('\n')} />
            )
          )
        })}
      </dl>
      {packs.map((pack) => (
        <Pack key={pack.id} pack={pack} />
      ))}
    </div>
  )
}

const effectText = ({ message, restarts }: Effect): string =>
  plain(restarts.length === 0 ? message : `${message} (${text.value.plan.restarts(restarts.join(', '))})`)

function Change({
  name,
  from = '',
  to = '',
}: {
  name: string
  from?: string | undefined
  to?: string | undefined
}) {
  const t = text.value.plan
  return (
    <div>
      <dt>{plain(name)}</dt>
      <dd class="change">
        <del>{plain(from) || t.none}</del> <span aria-hidden="true">→</span> <ins>{plain(to) || t.none}</ins>
      </dd>
    </div>
  )
}

function Pack({ pack }: { pack: PackChange }) {
  const t = text.value.plan
  const { name, displayName, change, fromVersion, toVersion, isDrained, isApplied, values = [] } = pack
  const parts = [...pack.manifests, ...pack.charts, ...pack.namespaces]
  const versions = fromVersion === toVersion ? [toVersion] : [fromVersion, toVersion]
  return (
    <section class="pack-change">
      <h3>
        {plain(displayName ?? name)} <span class="tag">{t.changes[change]}</span>{' '}
        <span class="dim">{versions.filter((each) => each !== undefined).join(' → ')}</span>
      </h3>
      {!isApplied && <p class="dim">{t.notApplied}</p>}
      {isDrained && <p>{t.drained}</p>}
      {values.length > 0 && (
        <pre class="lines" tabIndex={0} aria-label={t.values}>
          {values.map(({ change: how, line, text: written }) => (
            <span key={`${how} ${line}`} class={how}>
              {how === 'added' ? '+' : '-'} {plain(written)}
              {'\n'}
            </span>
          ))}
        </pre>
      )}
      {pack.valuesLeftOut !== undefined && <p class="dim">{t.linesLeftOut(pack.valuesLeftOut)}</p>}
      {parts.length > 0 && (
        <p class="dim">{parts.map((part) => `${plain(part.name)}: ${t.changes[part.change]}`).join(', ')}</p>
      )}
    </section>
  )
}
