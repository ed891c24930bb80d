// Pool, labels and taints of the node of this host: written as kubectl writes them, one a line.
import { useState } from 'preact/hooks'
import type { ClusterChangeDryRun } from '../../../cluster/desired/schemas.ts'
import type { ClusterConfiguration, EdgeMachinePoolConfig } from '../../../cluster/schemas.ts'
import { ChangeForm, Entry, Lines, linesOf, useAction } from '../../shared/parts.tsx'
import { useFound } from '../../shared/read.ts'
import { change, ifMatch } from '../../shared/request.ts'
import { isAdmin } from '../../shared/session.ts'
import { clusterPath, text } from '../host.tsx'
import { Diff, Problems, Steps } from './cluster-plan.tsx'

type Taint = NonNullable<EdgeMachinePoolConfig['taints']>[number]

/** What is written of a node. */
export interface NodeText {
  /** `key=value`, one a line. */
  readonly labels: string
  /** `key=value:effect`, one a line. */
  readonly taints: string
}

/** The text before the first mark and the one behind it, which is empty where there is no mark. */
function split(line: string, mark: string): readonly [string, string] {
  const at = line.indexOf(mark)
  return at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)]
}

/** The host judges names and values. */
const labelsOf = (written: string): Readonly<Record<string, string>> =>
  Object.fromEntries(linesOf(written).map((line) => split(line, '=')))

const taintsOf = (written: string): readonly Taint[] =>
  linesOf(written).map((line) => {
    const [name, effect] = split(line, ':')
    const [key, value] = split(name, '=')
    return { key, value, effect: effect as NonNullable<Taint['effect']> }
  })

/** Members of a pool of the API. */
export const nodeOf = ({ labels, taints }: NodeText) => ({
  additionalLabels: labelsOf(labels),
  taints: [...taintsOf(taints)],
})

const textOf = ({ additionalLabels = {}, taints = [] }: Partial<EdgeMachinePoolConfig>): NodeText => ({
  labels: Object.entries(additionalLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join('\n'),
  taints: taints
    .map(({ key = '', value = '', effect = '' }) => `${key}${value === '' ? '' : `=${value}`}:${effect}`)
    .join('\n'),
})

interface NodeFieldsProps {
  readonly node: NodeText
  readonly onChange: (node: NodeText) => void
}

/** Fields of labels and taints. */
export function NodeFields({ node, onChange }: NodeFieldsProps) {
  const t = text.value.node
  const isReadOnly = !isAdmin.value
  return (
    <>
      <Lines
        label={t.labels}
        value={node.labels}
        hint={t.labelsLong}
        isReadOnly={isReadOnly}
        onChange={(labels) => onChange({ ...node, labels })}
      />
      <Lines
        label={t.taints}
        value={node.taints}
        hint={t.taintsLong}
        isReadOnly={isReadOnly}
        onChange={(taints) => onChange({ ...node, taints })}
      />
    </>
  )
}

/** What a new cluster is given beside its definition. */
export interface PoolText extends NodeText {
  readonly pool: string
  readonly ntpServers: string
  readonly sshKeys: string
}

export const emptyPool: PoolText = { pool: '', labels: '', taints: '', ntpServers: '', sshKeys: '' }

/** Fields that few new clusters need. */
export function PoolFields({ given, onChange }: { given: PoolText; onChange: (given: PoolText) => void }) {
  const t = text.value.node
  const { ntpServers, sshKeys } = text.value.clusterAccess
  return (
    <details>
      <summary>{t.more}</summary>
      <div class="form">
        <Entry
          label={t.pool}
          value={given.pool}
          onChange={(pool) => onChange({ ...given, pool })}
          maxLength={63}
          hint={t.poolLong}
        />
        <NodeFields node={given} onChange={(node) => onChange({ ...given, ...node })} />
        <Lines
          label={ntpServers}
          value={given.ntpServers}
          onChange={(value) => onChange({ ...given, ntpServers: value })}
        />
        <Lines
          label={sshKeys}
          value={given.sshKeys}
          onChange={(value) => onChange({ ...given, sshKeys: value })}
        />
      </div>
    </details>
  )
}

interface NodeFormProps {
  readonly present: ClusterConfiguration
  readonly onDone: () => void
}

/** Changes labels and taints of the node: what differs is shown first. */
export function NodeForm({ present, onDone }: NodeFormProps) {
  const t = text.value.create
  const [pool = { hosts: [{}] }] = present.spec?.cloudConfig?.spec?.machinePoolConfig ?? []
  const before = textOf(pool)
  const [typed, setTyped] = useState<NodeText>()
  const [isSaved, setSaved] = useState(false)
  const node = typed ?? before
  const body = () => {
    const { additionalLabels, taints } = nodeOf(node)
    // The pool is merged: a label that was taken away has to be named.
    const gone = Object.keys(pool.additionalLabels ?? {}).filter(
      (key) => !Object.hasOwn(additionalLabels, key),
    )
    const labels = { ...additionalLabels, ...Object.fromEntries(gone.map((key) => [key, null])) }
    return {
      spec: {
        cloudConfig: { spec: { machinePoolConfig: [{ ...pool, additionalLabels: labels, taints }] } },
      },
    }
  }
  const [found, setFound] = useFound<ClusterChangeDryRun>(body())
  const mayGo = found?.isChanged === true && found.isPossible
  const action = useAction(async () => {
    const options = ifMatch(clusterPath)
    if (!mayGo) {
      setFound(await change<ClusterChangeDryRun>('PATCH', `${clusterPath}?dryRun=true`, body(), options))
      return
    }
    await change('PATCH', clusterPath, body(), options)
    setTyped(undefined)
    setSaved(true)
    onDone()
  })
  const submit = mayGo ? t.apply : t.check
  const isChanged = node.labels !== before.labels || node.taints !== before.taints
  return (
    <ChangeForm action={action} submit={action.isBusy ? t.checking : submit} isOff={!isChanged}>
      <NodeFields
        node={node}
        onChange={(next) => {
          setTyped(next)
          setSaved(false)
        }}
      />
      {found && (
        <div class="stack" aria-live="polite">
          <Problems problems={found.problems} good={found.isChanged ? t.changePossible : t.unchanged} />
          {found.diff && <Diff diff={found.diff} />}
          <Steps plan={found.plan} />
        </div>
      )}
      {isSaved && <p role="status">{text.value.clusterAccess.saved}</p>}
    </ChangeForm>
  )
}
