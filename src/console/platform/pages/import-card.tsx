import { useEffect, useRef, useState } from 'preact/hooks'
import { bytes, plain } from '../../shared/format.ts'
import { Card, Command, Facts, Note, OnlyAdministrators, Problem, Tick } from '../../shared/parts.tsx'
import { RequestError } from '../../shared/request.ts'
import { hasRole } from '../../shared/session.ts'
import { hrefOf } from '../../shared/shell.tsx'
import { sharedText } from '../../shared/texts.ts'
import { FileDrop, Transfer } from '../../shared/transfer.tsx'
import {
  beginImport,
  dismissImport,
  isImporting,
  lookAt,
  running,
  type ImportKind,
  type Look,
} from '../imports.ts'
import { remoteScoped, shellWord, text } from '../platform.ts'

const accepted: Readonly<Record<ImportKind, string>> = {
  pack: '.tar,.tar.gz,.tgz,.tar.zst',
  profile: '.json,.yaml,.yml',
}

/** The page of a kind; below it are those of what was imported. */
export const pageOf = (kind: ImportKind): string => (kind === 'pack' ? '/packs' : '/profiles')

interface Chosen {
  readonly file: File
  /** Absent while it is looked at. */
  readonly look?: Look
  readonly error?: RequestError
}

/** A file is chosen, what it holds and what is wrong with it is shown, and then it is given to the platform. */
export function ImportCard({ kind, onDone }: { kind: ImportKind; onDone: () => void }) {
  const t = text.value.imports
  const [chosen, setChosen] = useState<Chosen>()
  const [isPublished, setPublished] = useState(false)
  const own = running.value?.kind === kind ? running.value : undefined
  const phase = own?.phase
  useEffect(() => {
    if (phase !== 'done') return
    setChosen(undefined)
    onDone()
  }, [phase])
  function choose(file: File): void {
    dismissImport()
    setChosen({ file })
    const keep = (found: Omit<Chosen, 'file'>) =>
      setChosen((now) => (now?.file === file ? { file, ...found } : now))
    void lookAt(kind, file).then(
      (look) => keep({ look }),
      (error: unknown) => {
        if (!(error instanceof RequestError)) throw error
        keep({ error })
      },
    )
  }
  const isFree = !isImporting()
  const file = chosen === undefined ? t.anyFile[kind] : shellWord(chosen.file.name)
  const verb = kind === 'pack' ? 'pack upload' : 'profile import'
  if (!hasRole('operator')) return <OnlyAdministrators>{sharedText.value.operatorOnly}</OnlyAdministrators>
  return (
    <>
      <Card title={t.titles[kind]} icon="upload">
        {own && <ImportBar />}
        {!isFree && !own && <p class="dim pad">{t.other}</p>}
        {isFree && <FileDrop title={t.drop} hint={t.hints[kind]} accept={accepted[kind]} onChoose={choose} />}
        {isFree && chosen && (
          <form
            class="pad form"
            onSubmit={(event) => {
              event.preventDefault()
              void beginImport(kind, chosen.file, isPublished)
            }}
          >
            <Found chosen={chosen} again={() => choose(chosen.file)} />
            {kind === 'profile' && (
              <Tick isOn={isPublished} onChange={setPublished}>
                {t.publish}
              </Tick>
            )}
            <div class="buttons">
              <button
                type="submit"
                class="primary"
                disabled={chosen.look === undefined || chosen.look.problem !== undefined}
              >
                {t.import}
              </button>
            </div>
          </form>
        )}
      </Card>
      <Command
        title={t.titles[kind]}
        command={remoteScoped(`${verb} ${file}${isPublished ? ' --publish' : ''}`)}
      />
    </>
  )
}

function Found({ chosen: { file, look, error }, again }: { chosen: Chosen; again: () => void }) {
  const t = text.value.imports
  const { name = '', version = '', facts = [], problem } = look ?? {}
  return (
    <div role="status" class="form">
      <h3>{plain(file.name)}</h3>
      {!look && !error && <p class="dim">{t.looking}</p>}
      {look && (
        <Facts
          facts={[
            [t.facts.name, plain(name)],
            [t.facts.version, plain(version)],
            ...facts.map(([fact, value]) => [t.facts[fact], plain(value)] as const),
            [t.facts.file, bytes(file.size)],
          ]}
        />
      )}
      {error && <Problem error={error} again={again} />}
      {problem !== undefined && (
        <Note mood="bad">
          <p>{t.problems[problem]}</p>
        </Note>
      )}
      {look && problem === undefined && (
        <Note mood="info">
          <p>{name === '' ? t.unread : t.readable}</p>
        </Note>
      )}
    </div>
  )
}

/** The import of this page; nothing where there is none. */
export function ImportBar() {
  const t = text.value.imports
  const box = useRef<HTMLDivElement>(null)
  const now = running.value
  const phase = now?.phase
  useEffect(() => {
    // The form that had the focus is gone.
    if (phase !== undefined && document.activeElement === document.body) box.current?.focus()
  }, [phase])
  if (!now) return null
  const { kind, fileName, project, sent, total, taken, error } = now
  const isOver = phase === 'done' || phase === 'refused'
  const dismiss = () => {
    dismissImport()
    document.querySelector('h1')?.focus()
  }
  return (
    <div ref={box} tabIndex={-1}>
      <Transfer
        fileName={fileName}
        state={phase === 'refused' ? 'bad' : now.phase}
        total={phase === 'refused' ? undefined : total}
        sent={phase === 'examining' ? undefined : sent}
        button={
          <button type="button" class="plain small" onClick={dismiss}>
            {isOver ? sharedText.value.close : sharedText.value.cancel}
          </button>
        }
      >
        {phase === 'sending' && <p class="dim">{t.sentOf(bytes(sent), bytes(total))}</p>}
        <div role="status">
          {phase === 'examining' && <p class="dim">{t.examining}</p>}
          {taken && (
            <p>
              {t.taken} <a href={hrefOf(`${pageOf(kind)}/${taken.uid}`, project)}>{plain(taken.title)}</a>
            </p>
          )}
        </div>
        {phase === 'refused' &&
          (error ? (
            <Problem error={error} title={t.refused} />
          ) : (
            <Note mood="bad">
              <p>{t.problems.unreadable}</p>
            </Note>
          ))}
      </Transfer>
    </div>
  )
}
