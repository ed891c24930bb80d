// A cluster is made, or changed, in one page from top to bottom: definition, values, what the host finds, and the order.
import { useMemo, useState } from 'preact/hooks'
import type { ClusterChangeDryRun } from '../../../cluster/desired/schemas.ts'
import type { ClusterCurrentApplications } from '../../../cluster/packs/schemas.ts'
import type { ClusterConfiguration, ClusterCreated, ClusterDryRun } from '../../../cluster/schemas.ts'
import type {
  ClusterConfigArchiveDetails,
  ClusterProfileDetail,
  UploadResponse,
  Variable,
} from '../../../definition/schemas.ts'
import { bytes, day, plain } from '../../shared/format.ts'
import {
  Card,
  ChangeForm,
  Command,
  Empty,
  Entry,
  linesOf,
  Note,
  OnlyAdministrators,
  PageHeader,
  Shown,
  Skeleton,
  useAction,
} from '../../shared/parts.tsx'
import { useFound, useReading, type Reading } from '../../shared/read.ts'
import { change, ifMatch } from '../../shared/request.ts'
import { isAdmin, keepSession } from '../../shared/session.ts'
import { api, clusterPath, remote, text } from '../host.tsx'
import { emptyPool, nodeOf, PoolFields } from './cluster-node.tsx'
import { Diff, Missing, Problems, Steps } from './cluster-plan.tsx'

/** The largest archive is examined on a slow disk. */
const examineMs = 1_800_000
/** A pre-flight reads the content that a cluster needs. */
const checkMs = 600_000

/** The page of the cluster, unless the user has gone to another one meanwhile. */
function showCluster(): void {
  if (location.hash.startsWith('#/cluster/c')) location.hash = '#/cluster'
}

type Profile = Pick<ClusterProfileDetail, 'profileUid' | 'profileName' | 'variables'>

/** A definition on the host that a cluster can be made or changed with. */
interface Choice {
  /** `archiveUploadPath`. */
  readonly path: string
  readonly title: string
  readonly details: string
  readonly profiles: readonly Profile[]
  readonly problems: readonly string[]
}

/** Values that were given on this page, by `keyOf`. */
type Values = Readonly<Record<string, string>>

const keyOf = (profileUid: string, name: string) => `${profileUid} ${name}`

const choiceOf = (slot: ClusterConfigArchiveDetails): Choice => ({
  path: slot.archiveUploadPath,
  title: plain(
    slot.clusterProfileDetails.map((each) => `${each.profileName} ${each.profileVersion}`).join(', '),
  ),
  details: [
    plain(slot.fileName ?? ''),
    slot.uploadedAt === undefined ? '' : day(slot.uploadedAt),
    bytes(slot.sizeBytes ?? 0),
  ]
    .filter(Boolean)
    .join(' · '),
  profiles: slot.clusterProfileDetails,
  problems: (slot.problems ?? []).map(({ place, message }) => plain(`${place}: ${message}`)),
})

const slotPath = (slot: string) => `${api}/clusters/archive/${slot}/details`

const filled = (readings: readonly Reading<ClusterConfigArchiveDetails>[]): readonly Choice[] =>
  readings
    .flatMap(({ body }) => (body && body.archiveUploadPath !== '' ? [body] : []))
    .toSorted((one, other) => (other.uploadedAt ?? '').localeCompare(one.uploadedAt ?? ''))
    .map(choiceOf)

/** Makes a cluster of a definition that is on the host, or that is given here. */
export function CreateCluster() {
  const t = text.value.create
  const ofSlot = (slot: string) => (isAdmin.value ? slotPath(slot) : undefined)
  const update = useReading<ClusterConfigArchiveDetails>(ofSlot('update'), 60_000)
  const overridden = useReading<ClusterConfigArchiveDetails>(ofSlot('overridden'), 60_000)
  const embedded = useReading<ClusterConfigArchiveDetails>(ofSlot('embedded'), 60_000)
  const [name, setName] = useState('')
  const [endpoint, setEndpoint] = useState('')
  const [pool, setPool] = useState(emptyPool)
  const draft = useDraft(filled([update, overridden, embedded]))
  // One key for all tries of this page: a repetition makes nothing.
  const key = useMemo(() => crypto.randomUUID(), [])
  const body = (): ClusterConfiguration => ({
    metadata: { name },
    spec: {
      archiveUploadPath: draft.chosen?.path ?? '',
      ...given(draft.values),
      cloudConfig: {
        spec: {
          clusterConfig: {
            controlPlaneEndpoint: { host: endpoint },
            ntpServers: [...linesOf(pool.ntpServers)],
            sshKeys: [...linesOf(pool.sshKeys)],
          },
          machinePoolConfig: [
            {
              ...nodeOf(pool),
              name: pool.pool,
              isControlPlane: true,
              useControlPlaneAsWorker: true,
              size: 1,
              hosts: [{}],
            },
          ],
        },
      },
    },
  })
  const [found, setFound] = useFound<ClusterDryRun>(body())
  const action = useAction(async () => {
    if (found?.isPossible !== true) {
      const dryRun = `${clusterPath}?dryRun=true`
      setFound(await change<ClusterDryRun>('POST', dryRun, body(), { timeoutMs: checkMs }))
      return
    }
    await change<ClusterCreated>('POST', clusterPath, body(), {
      headers: { 'idempotency-key': key },
      timeoutMs: checkMs,
    })
    showCluster()
  })
  return (
    <>
      <PageHeader title={t.title}>{t.long}</PageHeader>
      {isAdmin.value ? (
        <DefinitionCard
          draft={draft}
          isRead={embedded.body !== undefined}
          onUpload={() => {
            overridden.again()
            update.again()
          }}
        />
      ) : (
        <OnlyAdministrators />
      )}
      {draft.chosen && isAdmin.value && (
        <Card title={t.values} icon="cluster">
          <ChangeForm
            action={action}
            submit={action.isBusy ? t.checking : found?.isPossible === true ? t.create : t.check}
            isOff={name === ''}
          >
            <Entry label={t.name} value={name} onChange={setName} maxLength={63} hint={t.nameLong} />
            <Entry label={t.endpoint} value={endpoint} onChange={setEndpoint} hint={t.endpointLong} />
            <VariableFields draft={draft} known={{}} />
            <PoolFields given={pool} onChange={setPool} />
            {found && (
              <div class="stack" aria-live="polite">
                <Problems problems={found.problems} good={t.possible} />
                <Missing needs={found.needs} />
                <Steps plan={found.plan} />
              </div>
            )}
          </ChangeForm>
        </Card>
      )}
      <Command command={remote('cluster create --name NAME --definition FILE')} />
    </>
  )
}

/** Changes the cluster: another definition, or other values of the present one. */
export function ChangeCluster() {
  const present = useReading<ClusterConfiguration>(isAdmin.value ? clusterPath : undefined, 20_000)
  const applications = useReading<ClusterCurrentApplications>(`${clusterPath}/applications`, 60_000)
  const t = text.value.create
  if (!isAdmin.value)
    return (
      <>
        <PageHeader title={t.changeTitle} />
        <OnlyAdministrators />
      </>
    )
  return (
    <>
      <PageHeader title={t.changeTitle}>{t.changeLong}</PageHeader>
      <Shown reading={present}>
        {(configuration) => (
          <Shown reading={applications}>
            {(running) => <ChangeForms present={configuration} running={running} onDone={present.again} />}
          </Shown>
        )}
      </Shown>
      <Command command={remote('cluster apply --definition FILE')} />
    </>
  )
}

interface ChangeFormsProps {
  readonly present: ClusterConfiguration
  readonly running: ClusterCurrentApplications
  readonly onDone: () => void
}

function ChangeForms({ present, running, onDone }: ChangeFormsProps) {
  const t = text.value.create
  const update = useReading<ClusterConfigArchiveDetails>(slotPath('update'), 60_000)
  const overridden = useReading<ClusterConfigArchiveDetails>(slotPath('overridden'), 60_000)
  const [at, setAt] = useState('')
  const kept = keptChoice(present, running)
  const others = filled([update, overridden])
  const same = others.find(({ path }) => path === kept.path)
  const choices = [
    same ? { ...kept, profiles: same.profiles } : kept,
    ...others.filter((each) => each !== same),
  ]
  const draft = useDraft(choices)
  const body = () => ({
    spec: {
      archiveUploadPath: draft.chosen?.path ?? '',
      ...given(draft.values),
      // A change that waits starts at once, or at the given time.
      scheduleAt: at === '' ? '' : new Date(at).toISOString(),
    },
  })
  const [found, setFound] = useFound<ClusterChangeDryRun>(body())
  const mayGo = found?.isChanged === true && (found.isPossible || found.isHeld)
  const action = useAction(async () => {
    const options = { timeoutMs: checkMs, ...ifMatch(clusterPath) }
    const path = `${clusterPath}/profiles`
    if (!mayGo) {
      setFound(await change<ClusterChangeDryRun>('PUT', `${path}?dryRun=true`, body(), options))
      return
    }
    await change('PUT', path, body(), options)
    onDone()
    showCluster()
  })
  return (
    <>
      <DefinitionCard draft={draft} isRead={update.body !== undefined} onUpload={update.again} />
      <Card title={t.values} icon="cluster">
        <ChangeForm action={action} submit={action.isBusy ? t.checking : mayGo ? t.apply : t.check}>
          <VariableFields draft={draft} known={knownValues(present, running)} />
          <Entry label={t.at} type="datetime-local" value={at} onChange={setAt} hint={t.atLong} />
          {found && (
            <div class="stack" aria-live="polite">
              <Problems
                problems={found.problems}
                good={!found.isChanged ? t.unchanged : found.isHeld ? t.held : t.changePossible}
              />
              {found.diff && <Diff diff={found.diff} />}
              <Steps plan={found.plan} />
            </div>
          )}
        </ChangeForm>
      </Card>
    </>
  )
}

const keptChoice = (
  { spec }: ClusterConfiguration,
  { clusterProfileTemplates }: ClusterCurrentApplications,
): Choice => ({
  path: spec?.archiveUploadPath ?? '',
  title: plain(clusterProfileTemplates.map(({ name, version }) => `${name} ${version}`).join(', ')),
  details: text.value.create.present,
  profiles: clusterProfileTemplates.map(({ uid, name, variables }) => ({
    profileUid: uid,
    profileName: name,
    variables,
  })),
  problems: [],
})

/** The values that the cluster has; those of sensitive variables are masked. */
function knownValues(
  { spec }: ClusterConfiguration,
  { clusterProfileTemplates }: ClusterCurrentApplications,
): Values {
  const running = clusterProfileTemplates.flatMap(({ uid, variables }) =>
    variables.map(({ name, value }) => [keyOf(uid, name), value] as const),
  )
  // The newest accepted ones, where a change waits.
  const posted = (spec?.profileVariables ?? []).flatMap(({ name = '', profileUid = '', value = '' }) =>
    profileUid === ''
      ? clusterProfileTemplates.map(({ uid }) => [keyOf(uid, name), value] as const)
      : [[keyOf(profileUid, name), value] as const],
  )
  return Object.fromEntries([...running, ...posted])
}

interface Draft {
  readonly choices: readonly Choice[]
  readonly chosen: Choice | undefined
  readonly choose: (path: string) => void
  readonly values: Values
  readonly setValue: (key: string, value: string | undefined) => void
}

/** The choice and the values of this page; the first definition is chosen until another one is. */
function useDraft(choices: readonly Choice[]): Draft {
  const [path, setPath] = useState<string>()
  const [values, setValues] = useState<Values>({})
  return {
    choices,
    chosen: choices.find((choice) => choice.path === path) ?? choices[0],
    choose: setPath,
    values,
    setValue: (key, value) =>
      setValues((before) => {
        const others = Object.entries(before).filter(([each]) => each !== key)
        return Object.fromEntries(value === undefined ? others : [...others, [key, value]])
      }),
  }
}

function given(values: Values) {
  const profileVariables = Object.entries(values).map(([key, value]) => {
    const [profileUid = '', name = ''] = key.split(/ (.*)/s)
    return { profileUid, name, value }
  })
  return profileVariables.length === 0 ? {} : { profileVariables }
}

interface DefinitionCardProps {
  readonly draft: Draft
  readonly isRead: boolean
  readonly onUpload: () => void
}

/** The definitions on the host, and the upload of another one. */
function DefinitionCard({ draft: { choices, chosen, choose }, isRead, onUpload }: DefinitionCardProps) {
  const t = text.value.create
  return (
    <Card title={t.definition} icon="content">
      {choices.length === 0 && !isRead && <Skeleton lines={2} />}
      {choices.length === 0 && isRead && (
        <Empty icon="content" title={t.none}>
          {t.noneLong}
        </Empty>
      )}
      {choices.length > 0 && (
        <fieldset class="choices">
          <legend class="hidden">{t.definition}</legend>
          {choices.map((choice) => (
            <label key={choice.path} class="choice">
              <input
                type="radio"
                name="definition"
                checked={choice === chosen}
                onChange={() => choose(choice.path)}
              />
              <span>
                <strong>{choice.title}</strong>
                <span class="dim">{choice.details}</span>
              </span>
            </label>
          ))}
        </fieldset>
      )}
      {chosen && chosen.problems.length > 0 && (
        <Note mood="warning">
          <ul>
            {chosen.problems.map((problem) => (
              <li key={problem}>{problem}</li>
            ))}
          </ul>
        </Note>
      )}
      {isAdmin.value && (
        <UploadDefinition
          onDone={(path) => {
            choose(path)
            onUpload()
          }}
        />
      )}
    </Card>
  )
}

function UploadDefinition({ onDone }: { onDone: (path: string) => void }) {
  const t = text.value.create
  const [file, setFile] = useState<File>()
  const [signature, setSignature] = useState<File>()
  const action = useAction(async () => {
    if (!file) return
    const form = new FormData()
    if (signature) form.append('signature', signature, 'signature')
    form.append('uploadFile', file, file.name)
    const release = keepSession()
    try {
      const path = `${api}/edgehosts/current/actions/upload-clusterconfig`
      const { uploadPath } = await change<UploadResponse>('POST', path, form, { timeoutMs: examineMs })
      onDone(uploadPath)
    } finally {
      release()
    }
  })
  const input = (label: string, accept: string, take: (chosen: File | undefined) => void) => (
    <label class="field">
      <span>{label}</span>
      <input
        type="file"
        accept={accept}
        onChange={(event) => take(event.currentTarget.files?.[0] ?? undefined)}
      />
    </label>
  )
  return (
    <ChangeForm action={action} submit={action.isBusy ? t.uploading : t.upload} isOff={!file} kind="plain">
      {input(t.file, '.tgz,.tar.gz,.tar.zst', setFile)}
      <details>
        <summary>{text.value.content.signature}</summary>
        {input(t.signature, '', setSignature)}
      </details>
    </ChangeForm>
  )
}

/** Fields of the shown variables, by profile. @param known what the cluster has */
function VariableFields({ draft: { chosen, values, setValue }, known }: { draft: Draft; known: Values }) {
  const profiles = (chosen?.profiles ?? []).flatMap(({ profileUid, profileName, variables }) => {
    const shown = variables.filter(({ hidden }) => hidden !== true)
    return shown.length === 0 ? [] : [{ profileUid, profileName, shown }]
  })
  return (
    <>
      {profiles.map(({ profileUid, profileName, shown }) => (
        <fieldset key={profileUid} class="form">
          <legend>{plain(profileName)}</legend>
          {shown.map((variable) => {
            const key = keyOf(profileUid, variable.name)
            return (
              <VariableField
                key={key}
                variable={variable}
                present={known[key] ?? variable.value ?? ''}
                given={values[key]}
                onGive={(value) => setValue(key, value)}
              />
            )
          })}
        </fieldset>
      ))}
    </>
  )
}

interface VariableFieldProps {
  readonly variable: Variable
  /** The value without a given one; masked where it is sensitive. */
  readonly present: string
  readonly given: string | undefined
  readonly onGive: (value: string | undefined) => void
}

function VariableField({ variable, present, given: typed, onGive }: VariableFieldProps) {
  const t = text.value.create
  const { displayName = '', name, description = '', inputType, options = [], immutable, required } = variable
  const isSensitive = variable.isSensitive === true
  const shown = typed ?? (isSensitive ? '' : present)
  const give = (value: string) => onGive(value === (isSensitive ? '' : present) ? undefined : value)
  const isChoice = inputType === 'dropdown' || variable.format?.toLowerCase() === 'boolean'
  const choices =
    inputType === 'dropdown'
      ? options.map(({ value, label }) => ({ value, label: label ?? value }))
      : ['true', 'false'].map((value) => ({ value, label: value }))
  const common = {
    value: shown,
    disabled: immutable === true,
    // The host names each missing value, all at once.
    'aria-required': required === true && !(isSensitive && present !== ''),
  }
  const hints = [
    plain(description),
    immutable === true ? t.immutable : '',
    isSensitive && present !== '' ? t.keptSecret : '',
    variable.regex ? t.pattern(variable.regex) : '',
  ].filter(Boolean)
  return (
    <label class="field">
      <span>
        {plain(displayName || name)}
        {displayName !== '' && displayName !== name && <code class="dim"> {name}</code>}
        {common['aria-required'] && <span class="dim"> {t.required}</span>}
      </span>
      {isSensitive && inputType !== 'multiline' ? (
        <input
          {...common}
          type="password"
          autocomplete="new-password"
          onInput={(event) => give(event.currentTarget.value)}
        />
      ) : isChoice ? (
        <select {...common} onChange={(event) => give(event.currentTarget.value)}>
          {!choices.some(({ value }) => value === shown) && (
            <option value={shown}>{shown || t.noValue}</option>
          )}
          {choices.map(({ value, label }) => (
            <option key={value} value={value}>
              {plain(label)}
            </option>
          ))}
        </select>
      ) : inputType === 'multiline' ? (
        <textarea
          {...common}
          rows={5}
          spellcheck={false}
          onInput={(event) => give(event.currentTarget.value)}
        />
      ) : (
        <input
          {...common}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          onInput={(event) => give(event.currentTarget.value)}
        />
      )}
      {hints.map((hint) => (
        <span key={hint} class="hint">
          {hint}
        </span>
      ))}
    </label>
  )
}
