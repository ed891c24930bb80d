import { useEffect, useState } from 'preact/hooks'
import type { Bundle, BundleDeletion, ContentUpload, ContentUsage } from '../../../content/schemas.ts'
import type { HostImage } from '../../../images/schemas.ts'
import { bytes, day, plain, span } from '../../shared/format.ts'
import { Confirm, usePlan } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Badge,
  Card,
  Command,
  Empty,
  More,
  OnlyAdministrators,
  PagedList,
  PageHeader,
  Problem,
  Shown,
  useAction,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { FileDrop, Transfer } from '../../shared/transfer.tsx'
import { useList, usePages, useReading } from '../../shared/read.ts'
import { change, RequestError } from '../../shared/request.ts'
import { isAdmin } from '../../shared/session.ts'
import { sharedText } from '../../shared/texts.ts'
import {
  beginUpload,
  dismissUpload,
  endUpload,
  isResumable,
  isUploading,
  pauseUpload,
  upload,
  type UploadProblem,
} from '../../shared/upload.ts'
import { api, remote, text } from '../host.tsx'

const path = `${api}/content`

export function Content() {
  const t = text.value.content
  const bundles = useList<Bundle>(`${path}/bundles`, 20_000)
  const uploads = useList<ContentUpload>(`${path}/uploads`, 5_000)
  const usage = useReading<ContentUsage>(`${path}/usage`, 20_000)
  const phase = upload.value?.progress.phase
  useEffect(() => {
    if (phase !== 'done') return
    for (const reading of [bundles, uploads, usage]) reading.again()
  }, [phase])
  return (
    <>
      <PageHeader title={t.title}>
        {usage.body && t.room(bytes(usage.body.fileSystem.availableBytes), bytes(usage.body.storedBytes))}
      </PageHeader>
      {isAdmin.value ? (
        <UploadCard uploads={uploads.items} onDiscard={uploads.again} />
      ) : (
        <OnlyAdministrators />
      )}
      <Card title={t.bundles} icon="content">
        <Shown reading={bundles}>
          {() =>
            bundles.items.length === 0 ? (
              <Empty icon="content" title={t.none}>
                {t.noneLong}
              </Empty>
            ) : (
              <>
                <Bundles items={bundles.items} onDelete={bundles.again} />
                <More list={bundles} />
              </>
            )
          }
        </Shown>
      </Card>
      <Images />
      <Command command={remote('content upload FILE')} />
    </>
  )
}

function UploadCard({ uploads, onDiscard }: { uploads: readonly ContentUpload[]; onDiscard: () => void }) {
  const t = text.value.content
  const [signature, setSignature] = useState<File>()
  const others = uploads.filter(({ kind }) => kind === 'blobs')
  return (
    <Card title={t.upload} icon="upload">
      {!isUploading() && (
        <>
          <details class="pad">
            <summary>{t.signature}</summary>
            <label class="field">
              <span class="dim">{t.signatureLong}</span>
              <input
                type="file"
                onChange={(event) => setSignature(event.currentTarget.files?.[0] ?? undefined)}
              />
            </label>
          </details>
          <FileDrop
            title={t.drop}
            hint={t.dropLong}
            accept=".tar,.tar.zst,.tar.gz,.tgz"
            folder={t.folder}
            onChoose={(source) => void beginUpload(source, signature)}
          />
        </>
      )}
      <UploadBar />
      {!isUploading() && others.length > 0 && (
        <div class="unfinished">
          <h3>{t.unfinished}</h3>
          <p class="dim">{t.unfinishedLong}</p>
          <ul>
            {others.map((each) => (
              <Unfinished key={each.uid} upload={each} onDiscard={onDiscard} />
            ))}
          </ul>
        </div>
      )}
    </Card>
  )
}

function Unfinished({ upload: each, onDiscard }: { upload: ContentUpload; onDiscard: () => void }) {
  const t = text.value.content
  const discard = () => change('DELETE', `${path}/uploads/${each.uid}`)
  const { run, isBusy, error } = useAction(discard, onDiscard)
  return (
    <li>
      <div class="row">
        <strong>{plain(each.name)}</strong>
        <button type="button" class="plain small" disabled={isBusy} onClick={() => void run()}>
          {t.discard}
        </button>
      </div>
      <progress aria-label={plain(each.name)} max={each.totalBytes ?? 1} value={each.receivedBytes} />
      <span class="dim">
        {t.sentOf(bytes(each.receivedBytes), bytes(each.totalBytes ?? 0))} · {day(each.lastActivityAt)}
      </span>
      {error && <Problem error={error} title={sharedText.value.notDone} />}
    </li>
  )
}

function problemText(problem: UploadProblem): string {
  const t = text.value.content
  if (problem instanceof RequestError) return plain(problem.message)
  return { notTar: t.notTar, noIndex: t.noIndex, incomplete: t.incomplete }[problem]
}

/** The upload of this page; nothing where there is none. */
export function UploadBar() {
  const t = text.value.content
  const now = upload.value
  if (!now) return null
  const { source, signature, progress, problem } = now
  const { phase, sent, total, saved, bytesPerSecond } = progress
  const left = bytesPerSecond > 0 ? span((total - sent) / bytesPerSecond) : '…'
  const sentOf = t.sentOf(bytes(sent), bytes(total))
  const states: Readonly<Record<typeof phase, string>> = {
    reading: t.reading,
    sending: `${sentOf} · ${t.speed(bytes(bytesPerSecond), left)}`,
    publishing: t.publishing,
    waiting: t.lost,
    paused: sentOf,
    done: [t.done, bytes(total), saved > 0 ? t.hadAlready(bytes(saved)) : ''].filter(Boolean).join(' · '),
  }
  const isKnown = phase !== 'reading' && phase !== 'publishing'
  const isOver = problem !== undefined || phase === 'done'
  return (
    <Transfer
      fileName={source.name}
      state={problem === undefined ? phase : 'bad'}
      total={problem === undefined ? total : undefined}
      sent={isKnown ? sent : undefined}
      button={
        isOver ? (
          <button type="button" class="plain small" onClick={dismissUpload}>
            {sharedText.value.close}
          </button>
        ) : phase === 'paused' ? (
          <>
            <button type="button" class="plain small" onClick={() => void beginUpload(source, signature)}>
              {t.goOn}
            </button>
            <button type="button" class="plain small" onClick={dismissUpload}>
              {sharedText.value.close}
            </button>
          </>
        ) : isResumable(source) ? (
          <button type="button" class="plain small" onClick={pauseUpload}>
            {t.pause}
          </button>
        ) : (
          <button type="button" class="plain small" onClick={endUpload}>
            {t.discard}
          </button>
        )
      }
    >
      <p class="dim" role={phase === 'sending' ? undefined : 'status'}>
        {problem === undefined ? states[phase] : problemText(problem)}
      </p>
    </Transfer>
  )
}

const nameOf = ({ name, indexDigest }: Bundle) => (name === '' ? indexDigest.slice(7, 19) : plain(name))

function Bundles({ items, onDelete }: { items: readonly Bundle[]; onDelete: () => void }) {
  const t = text.value.content
  const [deleted, setDeleted] = useState<Bundle>()
  return (
    <>
      <Table
        title={t.bundles}
        file="bundles"
        items={items}
        keyOf={({ uid }) => uid}
        columns={[
          {
            title: t.bundle,
            cell: (bundle) => (
              <>
                {nameOf(bundle)}
                {bundle.isPinned && <span class="tag">{t.needed(plain(bundle.holders.join(', ')))}</span>}
                {bundle.isForeign && <Badge mood="warning">{t.foreign}</Badge>}
                {bundle.damagedBlobs > 0 && <Badge mood="bad">{t.damaged(bundle.damagedBlobs)}</Badge>}
              </>
            ),
          },
          {
            title: t.holds,
            cell: ({ images, architectures, definition }) =>
              [t.images(images), architectures.join(', '), definition ? t.definition : '']
                .filter(Boolean)
                .join(' · '),
          },
          { title: t.size, isNumber: true, cell: ({ sizeBytes }) => bytes(sizeBytes) },
          { title: t.published, cell: ({ publishedAt }) => day(publishedAt) },
          {
            title: t.delete,
            isAction: true,
            cell: (bundle) => (
              <AdminButton kind="plain small" isOff={bundle.isPinned} onClick={() => setDeleted(bundle)}>
                {t.delete}…
              </AdminButton>
            ),
          },
        ]}
      />
      {deleted && (
        <DeleteBundle
          bundle={deleted}
          onClose={() => {
            setDeleted(undefined)
            onDelete()
          }}
        />
      )}
    </>
  )
}

function DeleteBundle({ bundle, onClose }: { bundle: Bundle; onClose: () => void }) {
  const t = text.value.content
  const url = `${path}/bundles/${bundle.uid}`
  const { plan, error } = usePlan(url, () => change<BundleDeletion>('DELETE', `${url}?dryRun=true`))
  return (
    <Confirm
      title={t.deleteTitle(nameOf(bundle))}
      action={t.delete}
      isOff={!plan}
      onConfirm={() => change('DELETE', url)}
      onClose={onClose}
    >
      {plan && <p>{t.deleteLong(plan.entries, bytes(plan.sizeBytes))}</p>}
      {error && <Problem error={error} />}
    </Confirm>
  )
}

function Images() {
  const t = text.value.content
  const images = usePages<HostImage>(`${path}/images`, 60_000)
  if (images.body && images.count === 0) return null
  return (
    <Card title={t.allImages} icon="disk">
      <PagedList list={images} none={null}>
        {(items) => (
          <Table
            title={t.allImages}
            file="images"
            items={items}
            keyOf={({ id }) => id}
            columns={[
              { title: t.image, cell: ({ title }) => plain(title) },
              {
                title: t.places,
                cell: ({ locations }) => [...new Set(locations.map(({ runtime }) => runtime))].join(', '),
              },
              { title: t.size, isNumber: true, cell: ({ sizeBytes }) => bytes(sizeBytes) },
              { title: t.here, cell: ({ canBePulledHere }) => (canBePulledHere ? t.yes : t.no) },
            ]}
          />
        )}
      </PagedList>
    </Card>
  )
}
