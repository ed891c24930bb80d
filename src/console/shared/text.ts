import { computed, signal, type ReadonlySignal } from '@preact/signals'

/** The languages of the pages; a new one needs its text beside `en` of each program. */
export const languages = { en: 'English', de: 'Deutsch' } as const
export type Language = keyof typeof languages

const isLanguage = (name: string): name is Language => name in languages
const preferred = [
  localStorage.getItem('language') ?? '',
  ...navigator.languages.map((each) => each.slice(0, 2)),
]

export const locale = signal<Language>(preferred.find(isLanguage) ?? 'en')
document.documentElement.lang = locale.value

export function setLanguage(name: string): void {
  if (!isLanguage(name)) return
  locale.value = name
  localStorage.setItem('language', name)
  document.documentElement.lang = name
}

/** The texts in the language of the page. */
export const textIn = <Text>(texts: Readonly<Record<Language, Text>>): ReadonlySignal<Text> =>
  computed(() => texts[locale.value])
