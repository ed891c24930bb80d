import { useState } from 'preact/hooks'
import type { Static } from 'typebox'
import type { ClusterProblem, ClusterValidatorResponse } from '../../../platform/clusters/schemas.ts'
import type { EdgeHostMeta } from '../../../platform/hosts/schemas.ts'
import type { ClusterProfile, Variable, Variables } from '../../../platform/profiles/schemas.ts'
import { plain } from '../../shared/format.ts'
import {
  AdminButton,
  Card,
  ChangeForm,
  Choice,
  Command,
  Entry,
  Note,
  PageHeader,
  Problem,
  Shown,
  Tick,
  useAction,
} from '../../shared/parts.tsx'
import { useReading } from '../../shared/read.ts'
import { change } from '../../shared/request.ts'
import { hasRole } from '../../shared/session.ts'
import { hrefOf } from '../../shared/shell.tsx'
import { sharedText } from '../../shared/texts.ts'
import { remoteScoped, scoped, shellWord, text } from '../platform.ts'
import { useProfiles } from './usable-profiles.ts'

const path = '/v1/spectroclusters/edge-native'

/** Values that were given, by the uid of the profile and the name of the variable. */
type Given = Readonly<Record<string, string>>
const keyOf = (profileUid: string, name: string) => `${profileUid} ${name}`

/** Creates a cluster: its host, its profiles with their values, every problem of the check, and then the creation. */
export function CreateCluster() {
  const t = text.value.create
  const [name, setName] = useState('')
  const [hostUid, setHostUid] = useState('')
  const [chosen, setChosen] = useState<readonly string[]>([])
  const [given, setGiven] = useState<Given>({})
  const [checked, setChecked] = useState<{ of: string; reply: ClusterValidatorResponse }>()
  const hosts = useReading<{ edgeHosts: readonly EdgeHostMeta[] }>(
    scoped('/v1/edgehosts/metadata', { quickFilter: 'unusedEdgeHosts', orderBy: 'metadata.name=1' }),
    15_000,
  )
  const usable = useProfiles()
  const profiles = usable.body?.items ?? []
  const entity = {
    metadata: { name },
    spec: {
      machinepoolconfig: [{ cloudConfig: { edgeHosts: [{ hostUid }] } }],
      profiles: chosen.map((uid) => ({
        uid,
        variables: Object.entries(given).flatMap(([key, value]) =>
          key.startsWith(`${uid} `) && value !== '' ? [{ name: key.slice(uid.length + 1), value }] : [],
        ),
      })),
    },
  }
  const of = JSON.stringify(entity)
  // What was changed since has to be checked again.
  const result = checked?.of === of ? checked.reply : undefined
  const check = useAction(async () =>
    setChecked({
      of,
      reply: await change('POST', scoped(`${path}/validate`), entity, { timeoutMs: 60_000 }),
    }),
  )
  const create = useAction(async () => {
    const { uid } = await change<{ uid: string }>('POST', scoped(path), entity, { timeoutMs: 60_000 })
    location.hash = hrefOf(`/clusters/${uid}`)
  })
  const isWhole = name !== '' && hostUid !== '' && chosen.length > 0
  const free = hosts.body?.edgeHosts ?? []
  const hostName = free.find(({ uid }) => uid === hostUid)?.name ?? 'HOST'
  return (
    <>
      <PageHeader title={t.title} />
      {!hasRole('operator') && (
        <Note mood="info">
          <p>{sharedText.value.operatorOnly}</p>
        </Note>
      )}
      {hosts.error && hosts.error.status !== 0 && <Problem error={hosts.error} again={hosts.again} />}
      <Card title={text.value.clusters.cluster} icon="cluster">
        <ChangeForm action={check} submit={t.check} isOff={!isWhole || !hasRole('operator')}>
          <Entry label={t.name} value={name} onChange={setName} isRequired />
          <Choice
            label={t.host}
            value={hostUid}
            options={[['', t.choose], ...free.map((host) => [host.uid, host.name] as const)]}
            onChange={setHostUid}
          />
          {hosts.body && free.length === 0 && <p class="dim">{t.noHosts}</p>}
          <Shown reading={usable} lines={2}>
            {({ items }) => <ProfileChoice profiles={items} chosen={chosen} onChange={setChosen} />}
          </Shown>
          {chosen.map((uid) => (
            <Values
              key={uid}
              uid={uid}
              given={given}
              onChange={(variable, value) => setGiven({ ...given, [keyOf(uid, variable)]: value })}
            />
          ))}
        </ChangeForm>
      </Card>
      {result && (
        <Card title={t.check} icon={result.isPossible ? 'good' : 'bad'}>
          <Verdict result={result} />
          {create.error && <Problem error={create.error} title={sharedText.value.notDone} />}
          <div class="buttons pad">
            <AdminButton
              kind="primary"
              needs="operator"
              isOff={!result.isPossible || create.isBusy}
              onClick={() => void create.run()}
            >
              {t.create}
            </AdminButton>
          </div>
        </Card>
      )}
      <Command
        command={remoteScoped(
          [
            `cluster create --name ${name === '' ? 'NAME' : shellWord(name)} --edge-host ${shellWord(hostName)}`,
            ...(chosen.length === 0 ? ['NAME@VERSION'] : chosen.map((uid) => wordOf(uid, profiles))).map(
              (word) => `--profile ${word}`,
            ),
          ].join(' '),
        )}
      />
    </>
  )
}

const wordOf = (uid: string, profiles: readonly ClusterProfile[]): string => {
  const profile = profiles.find(({ metadata }) => metadata.uid === uid)
  return profile ? shellWord(`${profile.metadata.name}@${profile.spec.version}`) : uid
}

interface ProfileChoiceProps {
  readonly profiles: readonly ClusterProfile[]
  readonly chosen: readonly string[]
  readonly onChange: (chosen: readonly string[]) => void
}

function ProfileChoice({ profiles, chosen, onChange }: ProfileChoiceProps) {
  const t = text.value
  return (
    <fieldset>
      <legend>{t.profiles.title}</legend>
      {profiles.length === 0 && (
        <>
          <p class="dim">{t.create.noProfiles}</p>
          <Command command={remoteScoped('profile import FILE')} />
        </>
      )}
      {profiles.map(({ metadata: { uid, name }, spec, status }) => (
        <Tick
          key={uid}
          isOn={chosen.includes(uid)}
          onChange={(isOn) => onChange(isOn ? [...chosen, uid] : chosen.filter((each) => each !== uid))}
        >
          {plain(`${name} ${spec.version}`)}
          {!status.isPublished && <span class="tag">{t.profiles.draft}</span>}
        </Tick>
      ))}
    </fieldset>
  )
}

interface ValuesProps {
  readonly uid: string
  readonly given: Given
  readonly onChange: (variable: string, value: string) => void
}

/** The variables of one profile that a cluster may set. */
function Values({ uid, given, onChange }: ValuesProps) {
  const own = useReading<Static<typeof Variables>>(scoped(`/v1/clusterprofiles/${uid}/variables`), 600_000)
  // One of the tenant is read as such.
  const ofTenant = useReading<Static<typeof Variables>>(
    own.error?.status === 404
      ? scoped(`/v1/clusterprofiles/${uid}/variables`, { ofTenant: 'true' })
      : undefined,
    600_000,
  )
  const shown = (own.body ?? ofTenant.body)?.variables.filter(({ hidden }) => hidden !== true) ?? []
  return (
    <>
      {shown.map((variable) => (
        <Value
          key={variable.name}
          variable={variable}
          value={given[keyOf(uid, variable.name)] ?? ''}
          onChange={(value) => onChange(variable.name, value)}
        />
      ))}
    </>
  )
}

interface ValueProps {
  readonly variable: Variable
  readonly value: string
  readonly onChange: (value: string) => void
}

function Value({ variable, value, onChange }: ValueProps) {
  const t = text.value
  const { name, displayName = '', isSensitive, options = [], defaultValue = '', required } = variable
  const title = plain(displayName === '' ? name : displayName)
  const label = required === true && defaultValue === '' ? `${title} (${t.profiles.required})` : title
  const preset = t.create.isDefault(plain(defaultValue))
  if (options.length > 0)
    return (
      <Choice
        label={label}
        value={value}
        options={[
          ['', preset],
          ...options.map((option) => [option.value, plain(option.label ?? option.value)] as const),
        ]}
        onChange={onChange}
      />
    )
  return (
    <Entry
      label={label}
      value={value}
      onChange={onChange}
      type={isSensitive === true ? 'password' : 'text'}
      placeholder={preset}
    />
  )
}

function Verdict({ result: { isPossible, problems } }: { result: ClusterValidatorResponse }) {
  const t = text.value.create
  const errors = problems.filter(({ severity }) => severity === 'error').length
  const title = isPossible
    ? problems.length === 0
      ? t.possible
      : t.warnings(problems.length)
    : t.impossible(errors)
  return (
    <Note mood={isPossible ? (problems.length === 0 ? 'good' : 'warning') : 'bad'}>
      <strong>{title}</strong>
      {problems.map((problem) => (
        <Line key={`${problem.code} ${problem.path ?? ''} ${problem.message}`} problem={problem} />
      ))}
    </Note>
  )
}

const Line = ({ problem: { message, path: where = '', severity } }: { problem: ClusterProblem }) => (
  <p>
    {severity === 'warning' && `${severity}: `}
    {plain(message)} {where !== '' && <code>{plain(where)}</code>}
  </p>
)
